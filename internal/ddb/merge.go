package ddb

import "maps"

// MergeError says that a user's update cannot be used.
type MergeError struct{ Err error }

func (e *MergeError) Error() string { return e.Err.Error() }

func (e *MergeError) Unwrap() error { return e.Err }

// Section adds changes made of placeholders to a section of the update, such as SET;
// false if it has none of that name.
func (w *Write) Section(verb, changes string) bool {
	to := map[string]*list{"SET": &w.set, "REMOVE": &w.remove, "ADD": &w.add, "DELETE": &w.del}[verb]
	if to != nil {
		to.append(", ", changes)
	}
	return to != nil
}

// Include takes over the placeholders of another expression.
func (w *Write) Include(names map[string]string, values Item) {
	maps.Copy(w.names, names)
	maps.Copy(w.values, values)
}
