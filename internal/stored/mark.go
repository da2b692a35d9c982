package stored

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Mark is what "onceEpoch" says: of what epoch the ids of an item are, and whether
// others that it is to remember lie in rows beside it.
//
// Without such rows it is the epoch's number. With them it is a text: a program that
// knows of no rows takes that for a foreign attribute, and refuses the item instead of
// making an operation again whose id it cannot see.
type Mark struct {
	Epoch int64 // of the ids in "once"; -1: the item remembers nothing
	// Rows is part of the keys of the rows: they are of this life of the item. "": there
	// are none that matter any more.
	Rows  string
	Moves int64 // how often ids were moved there: the mark is another one after each time
	Moved int64 // the item's epoch when that was last
}

// Value is the mark as it is stored.
func (m Mark) Value() types.AttributeValue {
	if m.Rows == "" {
		return ddb.Integer(m.Epoch)
	}
	return ddb.Text(fmt.Sprintf("%d %d %d %s", m.Epoch, m.Moved, m.Moves, m.Rows))
}

// Beside reports whether rows beside the item may have ids that it is to remember, to a
// writer in an epoch.
func (m Mark) Beside(epoch int64) bool {
	return m.Rows != "" && m.Moved >= max(m.Epoch, epoch)-1
}

// At is the mark that a writer in an epoch leaves who moves nothing: the rows are forgotten
// with the last ids in them. The number alone comes back in a later epoch only, so that no
// two states of an item have one mark.
func (m Mark) At(epoch int64) Mark {
	if epoch <= m.Epoch {
		return m
	}
	if !m.Beside(epoch) {
		return Mark{Epoch: epoch}
	}
	m.Epoch = epoch
	return m
}

// MarkOf is the mark of an item; of one that is no item's, the mark of one that
// remembers nothing.
func (t *Table) MarkOf(item ddb.Item) Mark {
	if m, err := parseMark(item[t.Once[2]]); err == nil {
		return m
	}
	return Mark{Epoch: -1}
}

// anotherRemember is how far a mark is off, at the least, that was counted in epochs of
// another length: by a program with another TableConfig.Remember.
const anotherRemember = 10 * 365 * 24 * time.Hour

// MarkAt is the mark of an item to a writer in an epoch. One that is years off is taken for
// one of this epoch: how old its ids are nobody can tell, so none is forgotten yet, nor kept
// for ever. It is written anew with the next id.
func (t *Table) MarkAt(item ddb.Item, epoch int64) Mark {
	m := t.MarkOf(item)
	off := max(m.Epoch-epoch, epoch-m.Epoch)
	if m.Epoch >= 0 && off > int64(anotherRemember/max(t.Retention, 1)) {
		m.Epoch, m.Moved = epoch, epoch
	}
	return m
}

var errMark = errors.New("it is not the epoch of ids of operations, nor that with where others lie")

// parseMark reads a mark.
func parseMark(v types.AttributeValue) (m Mark, err error) {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		m.Epoch, err = wholeNumber(v)
		return m, err
	}
	parts := strings.Split(s.Value, " ")
	if len(parts) != 4 || parts[3] == "" {
		return m, errMark
	}
	for i, n := range []*int64{&m.Epoch, &m.Moved, &m.Moves} {
		if *n, err = strconv.ParseInt(parts[i], 10, 64); err != nil || *n < 0 || *n > MaxNumber {
			return m, errMark
		}
	}
	m.Rows = parts[3]
	return m, nil
}
