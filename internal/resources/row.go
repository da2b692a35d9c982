package resources

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Attributes of a resource.
const (
	aQueued  = "queued"
	aRunning = "running"
	aDead    = "dead"
	aLater   = "later"  // jobs that wait for their time, in rows of their own
	aLevels  = "levels" // BOOL: jobs of it may have other priorities than the default
	aLimit   = "limit"
	aFixed   = "limitSet" // BOOL: SetLimit has set it
	aToken   = "token"    // last fencing token given out on the resource
	aChanges = "changes"  // counts every change of the counters, for the audit

	aAsked = "asked" // N, Unix nanoseconds, the last three at random: when an operator's last call was made

	aRemoved = "swept"  // SS: the permits that were lately removed because their lease was over
	aPaused  = "paused" // N, Unix seconds: since when it is paused; its token is then beyond maxToken

	PermitPrefix = "p_" // + id: until when a permit is held, Unix seconds
	OwnerPrefix  = "o_" // + id: "<Unix seconds> <Config.Owner>", who took the permit when; with Config.NamePermits only
	brokenPrefix = "x_" // + id of a permit, or token of a job: it was ended by force; the end that it had, Unix seconds
)

// Numbers of a resource beyond these are nobody's work: they must let nobody
// in, nor overflow.
const (
	MaxCount = 1_000_000_000
	MaxToken = 1 << 62 // and what a token grows by while its resource is paused
)

// Row is what the row of a resource says.
type Row struct {
	Name                  string
	Queued, Running, Dead int // Running counts jobs and permits, also those whose holder is dead
	Later                 int // jobs that wait for their time
	Levels                bool
	Limit                 int // that this program goes by
	Paused                time.Time

	Fixed   bool  // SetLimit has set the limit
	Stored  int   // the limit in the row
	Token   int64 // 0: none was given out yet
	Changes int64
	Permits map[string]Permit // by attribute

	asked   int64                // when an operator's last call was made; 0: there was none
	removed []string             // whose permits were removed, lately, as those of dead holders
	broken  map[string]time.Time // what was ended by force, by the name of its attribute, and the end that it had
}

// Permit is when a permit ends, and how its row says so.
type Permit struct {
	Until time.Time
	End   types.AttributeValue
	Owner types.AttributeValue // who took it when; nil if it does not say
}

// Jobs is how many jobs run.
func (r Row) Jobs() int { return r.Running - len(r.Permits) }

// Full reports whether the limit is used up.
func (r Row) Full() bool { return r.Running >= r.Limit }

// Parse reads a resource's row; an empty one is a resource that nobody has used. own is
// the limit of this program, 0: none.
func Parse(name string, row ddb.Item, own int) (Row, error) {
	r := Row{Name: name, Limit: 1}
	err := r.read(row)
	if err != nil {
		err = fmt.Errorf("%w: resource %q: %w", repo.ErrSchema, name, err)
	}
	if r.Stored = r.Limit; own != 0 && !r.Fixed {
		r.Limit = own
	}
	return r, err
}

func (r *Row) read(row ddb.Item) error {
	for _, f := range []struct {
		name string
		to   *int
	}{{aQueued, &r.Queued}, {aRunning, &r.Running}, {aDead, &r.Dead}, {aLimit, &r.Limit}} {
		n, err := Integer(row, f.name, MaxCount)
		if err != nil {
			return err
		}
		if row[f.name] != nil {
			*f.to = int(n)
		}
	}
	// A program that knows no such jobs may have forgotten the resource, and its counter
	// with it: what is below zero then keeps nobody from the jobs.
	if later, err := ddb.Int(row[aLater]); row[aLater] != nil && err != nil {
		return fmt.Errorf("attribute %q: %w", aLater, err)
	} else if r.Later = int(max(later, 0)); later > MaxCount {
		return fmt.Errorf("attribute %q: it is above %d", aLater, MaxCount)
	}
	_, r.Fixed = row[aFixed]
	_, r.Levels = row[aLevels]
	r.removed = removedIn(row)
	var err error
	if r.Token, r.Paused, err = tokenOf(row); err != nil {
		return err
	}
	if r.Changes, err = Integer(row, aChanges, MaxToken); err != nil {
		return err
	}
	if r.asked, err = Integer(row, aAsked, MaxToken); err != nil {
		return err
	}
	return r.readHeld(row)
}

// readHeld reads the permits that are held, and what was ended by force.
func (r *Row) readHeld(row ddb.Item) error {
	for attr, v := range row {
		switch {
		case strings.HasPrefix(attr, brokenPrefix):
			r.noteBroken(attr, v)
		case strings.HasPrefix(attr, PermitPrefix):
			until, err := ddb.Time(v)
			if err != nil {
				return fmt.Errorf("attribute %q: %w", attr, err)
			}
			if r.Permits == nil {
				r.Permits = map[string]Permit{}
			}
			r.Permits[attr] = Permit{until, v, row[OwnerAttr(attr)]}
		}
	}
	if r.Running < len(r.Permits) {
		return fmt.Errorf("%d permits are held and %q is %d", len(r.Permits), aRunning, r.Running)
	}
	return nil
}

// OwnerAttr is the attribute that says who took a permit.
func OwnerAttr(permit string) string { return OwnerPrefix + strings.TrimPrefix(permit, PermitPrefix) }

// Parse reads a resource's row as this program does.
func (t *Table) Parse(name string, row ddb.Item) (Row, error) { return Parse(name, row, t.Cfg.Limit) }

// Read reads the row of a resource. One request. With an error the result has its name.
func (t *Table) Read(ctx context.Context, name string) (Row, error) {
	res := t.Core.Read(ctx, Key(name), ddb.Options{Holding: true})
	if res.Err != nil {
		return Row{Name: name}, res.Err
	}
	return t.Parse(name, res.Item)
}

// All iterates over all resources that were ever used, in no order. One whose row cannot
// be read comes with its name and ErrSchema, and the iteration goes on; every other error
// ends it. At least 16 requests, one for each shard; one read unit per 4 KB.
func (t *Table) All(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for i := range Shards {
			for r, err := range t.InShard(ctx, i, Page{}) {
				if !yield(r, err) || err != nil && r.Name == "" {
					return
				}
			}
		}
	}
}

// InShard iterates over the resources of a shard. An error of one resource comes with its
// name.
func (t *Table) InShard(ctx context.Context, shard int, p Page) iter.Seq2[Row, error] {
	return Parsed(t.Rows(ctx, shardKey(shard), p), func(row ddb.Item) (Row, error) {
		return t.Parse(Text(row, SK), row)
	})
}
