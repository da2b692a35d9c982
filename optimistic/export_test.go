package optimistic

import "github.com/dynahold/dynahold/repo"

// Waiting is how many callers of this process wait behind the one that changes
// an item.
func Waiting[T any](r *Repository[T], key repo.Key) int {
	o, err := r.r.one(key)
	if err != nil {
		return 0
	}
	return r.r.queues.Waiting(o.text)
}
