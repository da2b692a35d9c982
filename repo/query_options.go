package repo

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
)

// QueryOption narrows, orders or bounds what a Query, a Page or a Scan reads.
type QueryOption func(*queryPlan)

// queryPlan is what the options of a query say together.
type queryPlan struct {
	narrow     func(c *codec, sk field) (narrowing, error)
	index      *index
	filter     *expression.ConditionBuilder
	descending bool
	eventually bool
	unexpired  bool
	unreadable func(*ItemError)
	pageSize   int32
	limit      int
	segments   int
	err        error // of the first option that makes no sense
}

func planOf(options []QueryOption) (*queryPlan, error) {
	plan := &queryPlan{}
	for i, o := range options {
		if o == nil {
			plan.refuse("option %d of the query is nil", i+1)
			continue
		}
		o(plan)
	}
	return plan, plan.err
}

func (p *queryPlan) refuse(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
}

// Descending returns the greatest sort key first.
func Descending() QueryOption { return func(p *queryPlan) { p.descending = true } }

// Eventually reads with eventual consistency, at half the price.
func Eventually() QueryOption { return func(p *queryPlan) { p.eventually = true } }

// Unexpired leaves out items whose time to live is over (TableConfig.Attributes.TTL,
// in Unix seconds), by the local clock: DynamoDB removes them within days. What it never
// removes, as what is dated more than five years ago (a zero time, 0), comes out.
func Unexpired() QueryOption { return func(p *queryPlan) { p.unexpired = true } }

// Unreadable goes on past items that cannot be read, and hands each to report, in the
// goroutine that reads. They count for no Limit, and the next page begins behind them.
// Without this option the first one ends the reading.
func Unreadable(report func(*ItemError)) QueryOption {
	return func(p *queryPlan) {
		if p.unreadable = report; report == nil {
			p.refuse("Unreadable(nil): give a function that hears of the items")
		}
	}
}

// Limit ends the reading after n items that come out. Of a Page it is the greatest
// number of its items.
func Limit(n int) QueryOption {
	return func(p *queryPlan) {
		if p.limit = n; n < 1 {
			p.refuse("Limit(%d): use 1 or more", n)
		}
	}
}

// PageSize bounds how many items one request reads. Default: DynamoDB's 1 MB, or
// as many as a Limit wants, and twice as many with each page where a filter leaves few.
func PageSize(n int) QueryOption {
	return func(p *queryPlan) {
		if n < 1 || n > maxPageSize {
			p.refuse("PageSize(%d): use 1 to %d", n, maxPageSize)
			return
		}
		p.pageSize = int32(n)
	}
}

const maxPageSize = 1 << 20

// Segments lets a Scan read so many parts of the table side by side. The items of
// different parts come out in any order.
func Segments(n int) QueryOption {
	return func(p *queryPlan) {
		if p.segments = n; n < 1 || n > maxSegments {
			p.refuse("Segments(%d): use 1 to %d", n, maxSegments)
		}
	}
}

const maxSegments = 1000 // more than this helps nobody; DynamoDB takes a million

// Filter keeps items for which a condition holds that the SDK's package expression
// builds. It names attributes that T has (ErrConfig; TableConfig.AnyAttribute), of a Query no
// key of what that reads. DynamoDB bills what is read, not what is kept.
func Filter(condition expression.ConditionBuilder) QueryOption {
	return func(p *queryPlan) {
		all := condition // an option may be used again
		if p.filter != nil {
			all = p.filter.And(condition)
		}
		p.filter = &all
	}
}

// index is a secondary index, by the names of its key attributes.
type index struct{ name, partition, sort string }

// Index reads a secondary index in the place of the table. partition and sort are
// the attributes that are its key, which fields of T map; sort is left out where it
// has none. Reads are eventually consistent: an item that was just written may be
// missing, or come as it was before. The index must project all attributes: on
// those that it leaves out, an item would be changed from an image that is not whole.
func Index(name, partition string, sort ...string) QueryOption {
	return func(p *queryPlan) {
		given := p.index != nil
		p.index = &index{name: name, partition: partition}
		switch {
		case given:
			p.refuse("Index(%q): the query has an index already: it reads one", name)
		case name == "" || partition == "":
			p.refuse("Index(%q, %q): an index has a name and a partition key", name, partition)
		case len(sort) > 1:
			p.refuse("Index(%q): an index has one sort key, not %d", name, len(sort))
		case len(sort) == 1:
			p.index.sort = sort[0]
		}
	}
}

// SortPrefix keeps items whose sort key, a text, begins with prefix.
func SortPrefix(prefix string) QueryOption {
	return narrowed(func(_ *codec, sk field) (of narrowing, _ error) {
		if sk.kind != "S" {
			return of, fmt.Errorf("%w: SortPrefix is for texts, the sort key (attribute %q) is %s", ErrKey, sk.name, kindName(sk.kind))
		}
		if err := ddb.KeptText(ddb.Text(prefix)); err != nil {
			return of, fmt.Errorf("%w: SortPrefix: %w", ErrKey, err)
		}
		return beginning(sk, prefix), nil
	})
}

// SortBetween keeps items whose sort key is from lo to hi, both included. Of an index whose
// sort key is a time.Time, texts are compared, in which fractions of seconds vary in length:
// an integer sorts, such as that of the role created with a unit.
func SortBetween(lo, hi any) QueryOption {
	return narrowed(func(c *codec, sk field) (of narrowing, _ error) {
		from, err := c.encodePart("sort", lo, sk, maxSort)
		if err != nil {
			return of, fmt.Errorf("SortBetween from: %w", err)
		}
		to, err := c.encodePart("sort", hi, sk, maxSort)
		if err != nil {
			return of, fmt.Errorf("SortBetween to: %w", err)
		}
		if order, _ := ddb.Compare(from, to); order > 0 {
			return of, fmt.Errorf("%w: SortBetween(%v, %v): the first is greater than the second", ErrKey, lo, hi)
		}
		return narrowing{expression.Key(sk.name).Between(expression.Value(from), expression.Value(to)), from, to}, nil
	})
}

// narrowing is which sort keys a query reads: as its request says it, and the first and the
// last that its answer may show. The zero value is all.
type narrowing struct {
	cond     expression.KeyConditionBuilder
	from, to types.AttributeValue
}

// beginning narrows to texts that begin with a prefix, behind that of their type. No text
// that DynamoDB keeps has the byte 0xff. All begin with an empty one, which it takes in no
// condition of a key.
func beginning(sk field, prefix string) narrowing {
	if prefix = sk.role.prefix + prefix; prefix == "" {
		return narrowing{}
	}
	return narrowing{expression.Key(sk.name).BeginsWith(prefix), ddb.Text(prefix), ddb.Text(prefix + "\xff")}
}

// narrowed is an option that can be given once.
func narrowed(narrow func(c *codec, sk field) (narrowing, error)) QueryOption {
	return func(p *queryPlan) {
		if p.narrow != nil {
			p.refuse("the query narrows the sort key twice: DynamoDB takes one condition")
		}
		p.narrow = narrow
	}
}
