package mutex

import "github.com/dynahold/dynahold/repo"

var _, _ repo.Held = (*Lock)(nil), (*Group)(nil)

// RequireIn lets a transaction be applied only if the lock is still held: see Require
// of txn.Tx.
func (l *Lock) RequireIn(tx repo.Tx) error { return l.hold.Require(tx) }

// RequireIn lets a transaction be applied only if all locks of the group are still
// held: see Require of txn.Tx.
func (g *Group) RequireIn(tx repo.Tx) error {
	if g.ctx == nil {
		return (&Lock{}).RequireIn(tx) // which is nobody's, too
	}
	for _, lock := range g.locks {
		if err := lock.RequireIn(tx); err != nil {
			return err
		}
	}
	return nil
}
