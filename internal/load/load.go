package load

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Workload says who changes what. Changes are read-modify-writes of a counter
// on items of a given size; every worker makes one after the other. A change that
// touches several items moves something from all of them to the last, or to an item
// that it makes.
type Workload struct {
	Processes int           // each has its own client and its own contender; default 1
	Workers   int           // goroutines in each process; default 1
	Items     int           // default 1
	Touches   int           // items that one change touches, each another; default 1
	Makes     bool          // a change makes an item beside
	Held      bool          // a change changes nothing: it has its one item for itself while inside runs, and what overlaps counts as lost
	Zipf      float64       // skew of the choice of an item, above 1; 0: all alike
	Size      int           // bytes of an item with what contenders add to it, about; default 1 KB
	Work      time.Duration // spent inside every change
	Pause     time.Duration // between the changes of one worker
	// Every is how far apart the changes come in the mean, at random moments, each to the
	// next worker that is free: an open load, as a queue of messages is. 0: each worker makes
	// one after the other.
	Every  time.Duration
	Warmup time.Duration // nothing that happens in it is measured; default a fifth of Span
	Span   time.Duration // how long changes are measured; default 2 s
	Enough int           // acknowledged changes after which the measured time soon ends; 0: none
	// Turns is the least number of turns that a process, or a worker of a single one,
	// has had on average when the measured time ends. Until then it goes on past Span,
	// Enough and Budget, for eight times Span at the longest: percentiles and fairness of
	// those who had none would be chance. 0: none.
	Turns     int
	Budget    int // the same for requests, which are what a run takes time for
	Latency   Latency
	Partition bool // every item has a partition to itself, with DynamoDB's limits; in virtual time only
	Seed      uint64
}

// Latency of a request: half of it on the way there, half on the way back. It is
// log-normal, or a Pareto distribution with the same percentiles, whose longest ones are
// longer. The zero value is log-normal, 4 ms in the median and 10 ms at the 99th
// percentile.
type Latency struct {
	Median, P99 time.Duration
	Pareto      bool
	Stall       time.Duration // one request in a thousand takes so much more
}

// Contender is a way to change items.
type Contender struct {
	Name string
	// Open makes the contender's share of one process. The table exists and its
	// items too, each with "id" (S, the key), "n" (N, the counter) and
	// "padding" (S); where changes touch several also "balance" (N), which is 0.
	// Contender.Prepare, if set, may add to them. A contender may put items of its
	// own beside them, without a counter. The context ends with the run, and everything that Open starts must end with it.
	Open func(ctx context.Context, client *dynamodb.Client, table string) (Change, error)
	// Prepare adds attributes to new items, such as a version. Optional.
	Prepare func(item map[string]any)
	// Beside are endings of names of tables that Open makes beside the one with the
	// items, with the same beginning: the run deletes them.
	Beside []string
	// Unknown tells whether an error leaves open if the change is in the item.
	// Nil: every error of a call of which a write had no clear answer does.
	Unknown func(err error) bool
}

// Change makes one change of the items: it must add one to each counter, and what
// is moved to each balance, and call inside once while nobody else may change them
// in between, or once per attempt where attempts can fail. nil is the promise that
// the change is in all items exactly once.
type Change func(ctx context.Context, items []Touched, inside func(context.Context)) error

// Touched is what a change does to one item.
type Touched struct {
	ID   string
	Move int  // added to the balance
	New  bool // the item has to be made
}

// Result is what a contender did with a workload. Requests, units and waste
// are those of the whole measured time, so that Requests/Changes is the cost
// of one.
type Result struct {
	Contender string
	Workload  Workload
	Virtual   bool
	Measured  time.Duration // Span, or less where Enough or Budget ended it

	Changes    int            // acknowledged
	Failed     int            // calls that ended in an error, by far the most for having given up
	Error      string         // the first of these errors, for whoever wonders
	Rate       float64        // acknowledged changes per second
	Requests   float64        // per acknowledged change
	Operations map[string]int // all of them, by operation
	Reads      float64        // of them
	Writes     float64        // of them, applied or not
	Wasted     float64        // of them: writes whose condition failed, or that were cancelled by a conflict
	WriteUnits float64        // billed, per acknowledged change
	ReadUnits  float64        // the same
	// Of them: billed for the first item, which is the hottest of a skewed
	// workload. Per acknowledged change too, whatever item that was of.
	HotWriteUnits, HotReadUnits float64
	P50, P99                    time.Duration // of a change begun in the measured time, from the call to its result; 0: none was
	// Jain is the fairness between processes, or between the workers of a single
	// one; 1 is even. Turns are how often each of them had its turn on average,
	// however many changes it made in it: with few, Jain says little.
	Jain, Turns float64
	Lost        int // acknowledged changes that are not in the items, item by item: must be 0
	Extra       int // changes in the items that nobody acknowledged and nobody called unknown: must be 0
	Imbalance   int // what all balances add up to: must be 0, since every change is there as a whole or not at all
}
