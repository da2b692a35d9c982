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

// Expected is how many writes the process of a repository looks for in the images that
// it gets: none when no call is under way.
func Expected[T any](r *Repository[T]) int { return r.r.table.Core.Expected() }
