package history

import "fmt"

// State is the item: absent, which is the zero State, or a number.
type State struct {
	Exists bool
	Value  int64
}

// Present is an item that is there.
func Present(value int64) State { return State{Exists: true, Value: value} }

func (s State) String() string {
	if !s.Exists {
		return "absent"
	}
	return fmt.Sprint(s.Value)
}

// Append returns the number that stands for a list and one more entry. As with
// a hash chain, equal numbers mean equal lists.
func Append(list, entry int64) int64 {
	// The mixer of splitmix64: it is a bijection, so that one list and two
	// entries never give the same.
	z := uint64(list)*0x9e3779b97f4a7c15 + uint64(entry) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64(z ^ z>>31)
}

// Kind is what a client does to the item.
type Kind int

// The operations, and what their Result tells when it is OK or Unknown.
const (
	Get    Kind = iota // Old: what was read
	Create             // New: what was written
	Update             // Old: what the change function saw last; New: what it left, absent if it removed the item
	Upsert             // the same; Old is absent if there was no item
	Delete             // nothing
)

var kindNames = [...]string{"Get", "Create", "Update", "Upsert", "Delete"}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Verdict is how an operation ended.
type Verdict int

// The verdicts. The zero Verdict is none of them, and always a violation.
const (
	_        Verdict = iota
	OK               // took effect
	NotFound         // Get, Update or Delete: there was no item
	Exists           // Create: there was one
	Refused          // certainly had and will have no effect, for a reason that the item does not tell
	Unknown          // may have had an effect, may still have it, or never
)

var verdictNames = [...]string{"no verdict", "ok", "not found", "exists", "refused", "unknown"}

func (v Verdict) String() string {
	if v < 0 || int(v) >= len(verdictNames) {
		return fmt.Sprintf("Verdict(%d)", int(v))
	}
	return verdictNames[v]
}

// Result is the verdict, and what the client knows of the item.
//
// An Unknown Update whose change function never ran has the zero Old and New:
// there was nothing to write.
type Result struct {
	Verdict  Verdict
	Old, New State
}

// describe is the operation in one line, for messages and pictures.
func describe(k Kind, r Result) string {
	switch {
	case r.Verdict != OK && r.Verdict != Unknown:
		return fmt.Sprintf("%v: %v", k, r.Verdict)
	case k == Get:
		return fmt.Sprintf("%v: %v %v", k, r.Verdict, r.Old)
	case k == Create:
		return fmt.Sprintf("%v %v: %v", k, r.New, r.Verdict)
	case k == Update || k == Upsert:
		return fmt.Sprintf("%v %v -> %v: %v", k, r.Old, r.New, r.Verdict)
	}
	return fmt.Sprintf("%v: %v", k, r.Verdict)
}
