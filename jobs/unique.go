package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// ExistsError says which job waits or runs under a key of [Unique].
type ExistsError struct{ Resource, Key, ID string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("resource %q has a job under the key %q already, %s", e.Resource, e.Key, e.ID)
}

// Is makes errors.Is true for ErrExists.
func (e *ExistsError) Is(target error) bool { return target == ErrExists }

// A job that is unique has a row that stands for its key, made and removed with it. Who
// finds one of another job looks for that: the resource is the same before and after the
// search, so a job that is not found was ended by a program that knows no such rows.

func (s *store) uniqueKey(resource, key string) ddb.Item {
	return resources.RowKey(uniquePrefix+resource, key)
}

// claim makes the row of a job's key. Of the job that is given none is left. A row with its id
// was made for this transaction, or the id is the caller's own: the row of that tells then.
type claim struct {
	rows.Traceless
	n    *insertion
	left string // the id of a job that has left the row; "": there must be none
}

// Write demands that the key is free. Where the job is known, it is that which has left it.
func (c claim) Write(*ddb.Write) (types.TransactWriteItem, bool, error) {
	row := c.n.s.uniqueKey(c.n.resource, c.n.unique())
	if c.n.known {
		return c.n.s.removal(row), c.left != "", nil
	}
	row[aID] = ddb.Text(c.n.id)
	put := c.n.s.table.Core.PutOf(row)
	if c.left == "" && c.n.marked() {
		c.left = c.n.id // the row of the id says whether that job is there
	}
	if c.left != "" {
		cond := "attribute_not_exists(#pk) OR #id = :left"
		put.Put.ConditionExpression, put.Put.ExpressionAttributeNames["#id"] = &cond, aID
		put.Put.ExpressionAttributeValues = ddb.Item{":left": ddb.Text(c.left)}
	}
	return put, true, nil
}

// Refused is that there is another.
func (c claim) Refused(image ddb.Item) error {
	if id := resources.Text(image, aID); id != c.n.id && !c.n.known {
		return &ExistsError{Resource: c.n.resource, Key: c.n.unique(), ID: id}
	}
	return nil // the row of the id says that it is known
}

// unique is the key of the job, "" if it is not unique.
func (n *insertion) unique() string { return resources.Text(n.row, aUnique) }

// exists judges an Enqueue that was refused by the key of another job: left is the id of a
// job that is not there any more, err says that it is. Neither: it is this job's own.
func (n *insertion) exists(ctx context.Context, image ddb.Item) (left string, err error) {
	id := resources.Text(image, aID)
	if id == n.id {
		return "", nil
	}
	if _, err := n.s.findJob(ctx, n.resource, id); errors.Is(err, repo.ErrNotFound) {
		return id, nil
	}
	return "", &ExistsError{Resource: n.resource, Key: n.unique(), ID: id}
}

// clear removes the row of the job's key, which a job has left that is gone.
func (n *insertion) clear(ctx context.Context, left string) ddb.Result {
	w := n.s.table.Core.NewWrite()
	w.IfEqual(aID, ddb.Text(left))
	return n.s.table.Core.Delete(ctx, w.Delete(n.s.uniqueKey(n.resource, n.unique())), ddb.Options{})
}

// free removes the row of the key of a job that ends.
func (s *store) free(c *change, resource string, j jobRow) {
	if key := resources.Text(j.row, aUnique); key != "" {
		c.writes = append(c.writes, s.removal(s.uniqueKey(resource, key)))
	}
}

// removal removes a row, whatever it says.
func (s *store) removal(key ddb.Item) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &s.table.Core.Name, Key: key}}
}

// freeIn is free in a transaction.
func (s *store) freeIn(all rows.Rows, resource string, j jobRow) {
	if key := resources.Text(j.row, aUnique); key != "" {
		row := s.uniqueKey(resource, key)
		at := s.rowIn(all, row)
		if next, ok := at.Action.(claim); ok {
			next.left = j.id
			at.Action = next
			return
		}
		at.Action = removing{s: s, key: row, id: j.id}
	}
}

// claimIn adds the row of the job's key to a transaction. Another job under it may end
// there.
func (n *insertion) claimIn(all rows.Rows) error {
	key := n.unique()
	if key == "" {
		return nil
	}
	at := n.s.rowIn(all, n.s.uniqueKey(n.resource, key))
	switch was := at.Action.(type) {
	case claim:
		return &ExistsError{Resource: n.resource, Key: key, ID: was.n.id}
	case removing:
		at.Action = claim{n: n, left: was.id}
	default:
		at.Action = claim{n: n}
	}
	return nil
}

// removing removes a row, in a transaction that has taken the job away to which it belongs.
type removing struct {
	rows.Traceless
	s   *store
	key ddb.Item
	id  string // of the job
}

// Write has no condition.
func (r removing) Write(*ddb.Write) (types.TransactWriteItem, bool, error) {
	return r.s.removal(r.key), true, nil
}
