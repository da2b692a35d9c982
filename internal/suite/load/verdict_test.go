package load_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/internal/rig"
)

// contended works until there are enough changes, however slow the machine is.
var contended = load.Workload{Processes: 2, Workers: 4, Enough: 80, Span: time.Minute, Warmup: 20 * time.Millisecond}

func TestLostUpdatesAreFound(t *testing.T) {
	overwriting := written("overwriting", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, inside func(context.Context)) error {
		out, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(out.Item["n"].(*types.AttributeValueMemberN).Value)
		if err != nil {
			return err
		}
		inside(ctx)
		out.Item["n"] = &types.AttributeValueMemberN{Value: strconv.Itoa(n + 1)}
		_, err = c.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: out.Item})
		return err
	})
	both(t, func(t *testing.T, virtual bool) {
		if r := run(t, virtual, contended, overwriting); r.Lost < r.Changes/2 || r.Extra != 0 || r.Failed != 0 {
			t.Errorf("eight workers overwrite each other: lost %d, extra %d, failed %d", r.Lost, r.Extra, r.Failed)
		}
	})
}

func TestDoubledUpdatesAreFound(t *testing.T) {
	doubling := written("doubling", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, _ func(context.Context)) error {
		return add(ctx, c, table, key, "2")
	})
	both(t, func(t *testing.T, virtual bool) {
		if r := run(t, virtual, contended, doubling); r.Extra < r.Changes || r.Lost != 0 {
			t.Errorf("every change counts twice: lost %d, extra %d of %d", r.Lost, r.Extra, r.Changes)
		}
	})
}

// Who holds an item and changes nothing is alone with it, or the run says how often
// not.
func TestHoldsThatOverlapAreFound(t *testing.T) {
	alone := make(chan struct{}, 1)
	locked := written("locked", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, inside func(context.Context)) error {
		alone <- struct{}{}
		defer func() { <-alone }()
		inside(ctx)
		return nil
	})
	contended := contended
	contended.Held, contended.Work = true, time.Millisecond
	if r := run(t, false, contended, locked); r.Lost+r.Extra != 0 || r.Changes == 0 {
		t.Errorf("one after the other: %d lost, %d extra of %d", r.Lost, r.Extra, r.Changes)
	}
	both(t, func(t *testing.T, virtual bool) {
		if r := run(t, virtual, contended, adding()); r.Lost < r.Changes/2 || r.Extra != 0 {
			t.Errorf("eight workers hold one item: %d lost, %d extra of %d", r.Lost, r.Extra, r.Changes)
		}
	})
	if _, err := load.New(t, engine).Run(t.Context(), load.Workload{Held: true, Touches: 2, Items: 3}, adding(), load.Options{}); err == nil {
		t.Error("two items held")
	}
}

// Tables that a contender has made beside are gone after the run.
func TestTablesBesideAreDeleted(t *testing.T) {
	var made string
	c := adding()
	c.Beside = []string{"-beside", "-never-made"}
	open := c.Open
	c.Open = func(ctx context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		made = table + "-beside"
		_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: &made, BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		})
		if err != nil {
			return nil, err
		}
		return open(ctx, client, table)
	}
	run(t, true, load.Workload{Span: 20 * time.Millisecond}, c)
	_, err := engine.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &made})
	var none *types.ResourceNotFoundException
	if !errors.As(err, &none) {
		t.Errorf("%s: %v", made, err)
	}
}

func TestAChangeThatWasDeniedButMadeIsExtra(t *testing.T) {
	contended := load.Workload{Processes: 2, Workers: 4, Span: 200 * time.Millisecond} // in virtual time
	denying := written("denying", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, _ func(context.Context)) error {
		return errors.Join(add(ctx, c, table, key, "1"), errors.New("not applied"))
	})
	r := run(t, true, contended, denying)
	if r.Changes != 0 || r.Failed == 0 || r.Extra < r.Failed || r.Error != "not applied" {
		t.Errorf("%+v", r)
	}
	denying.Unknown = func(error) bool { return true }
	if r := run(t, true, contended, denying); r.Extra != 0 || r.Failed == 0 {
		t.Errorf("called unknown, and yet %d of %d are extra", r.Extra, r.Failed)
	}
}

// leaver is a caller's transport: the caller leaves as soon as its request waits
// on its way, and not before, however slow the machine is.
type leaver struct {
	next  dynamodb.HTTPClient
	leave context.CancelFunc
}

func (l leaver) Do(req *http.Request) (*http.Response, error) {
	return l.next.Do(req.WithContext(leavingContext{req.Context(), l.leave}))
}

// leavingContext ends when somebody begins to wait for its end.
type leavingContext struct {
	context.Context
	leave context.CancelFunc
}

func (c leavingContext) Done() <-chan struct{} { c.leave(); return c.Context.Done() }

// What a call sends behind itself, and nobody waits for, does not outlive a run.
func TestRequestsBehindACall(t *testing.T) {
	behind := written("behind", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, inside func(context.Context)) error {
		inside(ctx)
		go func() {
			time.Sleep(100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Millisecond)
			defer cancel()
			_, _ = c.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key})
		}()
		return add(ctx, c, table, key, "1")
	})
	if r := run(t, true, contended, behind); r.Changes == 0 || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
}

// A caller who leaves does not call back what is on its way.
func TestCancelledRequestsReachTheEngine(t *testing.T) {
	leaving := written("leaving", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, _ func(context.Context)) error {
		defer time.Sleep(time.Millisecond) // time passes, virtual time too
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		c = dynamodb.New(c.Options(), func(o *dynamodb.Options) { o.HTTPClient = leaver{o.HTTPClient, leave} })
		return add(ctx, c, table, key, "1")
	})
	leaving.Unknown = func(error) bool { return false }
	contended := contended
	contended.Budget = 50 // nothing is acknowledged
	both(t, func(t *testing.T, virtual bool) {
		if r := run(t, virtual, contended, leaving); r.Changes != 0 || r.Extra < r.Failed || r.Failed == 0 {
			t.Errorf("%d of %d requests that nobody waited for are in the item", r.Extra, r.Failed)
		}
	})
	leaving.Unknown = nil // by hand, the harness knows which calls had no clear answer
	if r := run(t, true, contended, leaving); r.Extra != 0 || r.Failed == 0 {
		t.Errorf("%d calls without an answer: %d extra", r.Failed, r.Extra)
	}
}

func TestModesLoseNothing(t *testing.T) {
	names := map[string]bool{}
	for _, c := range load.Modes() {
		if names[c.Name] {
			t.Errorf("two modes are called %q", c.Name)
		}
		names[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			both(t, func(t *testing.T, virtual bool) {
				w := contended
				w.Items, w.Zipf, w.Work, w.Enough = 3, 1.5, time.Millisecond, rig.Share(20, 80)
				if r := run(t, virtual, w, c); r.Lost != 0 || r.Extra != 0 || r.Changes == 0 {
					t.Errorf("lost %d, extra %d of %d", r.Lost, r.Extra, r.Changes)
				}
			})
		})
	}
}

// Changes of several items are made as a whole or not at all.
func TestHalfChangesAreFound(t *testing.T) {
	contended := contended
	contended.Items, contended.Touches, contended.Makes = 5, 2, true
	for name, c := range map[string]struct {
		skip, twice         int // which of the three items
		lost, extra, moving bool
	}{
		"whole":        {-1, -1, false, false, false},
		"first left":   {0, -1, true, false, true},
		"not made":     {2, -1, true, false, true},
		"made twice":   {-1, 2, false, true, true},
		"second twice": {-1, 1, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			moving := load.Contender{Name: name, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
				return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
					inside(ctx)
					for n, i := range items {
						if i.New != (n == 2) || i.Move != []int{-1, -1, 2}[n] {
							t.Errorf("%+v", items)
						}
						times := 1
						switch n {
						case c.skip:
							times = 0
						case c.twice:
							times = 2
						}
						for range times {
							if _, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
								TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: i.ID}},
								UpdateExpression:         aws.String("ADD #n :one, balance :move"),
								ExpressionAttributeNames: map[string]string{"#n": "n"},
								ExpressionAttributeValues: map[string]types.AttributeValue{
									":one": &types.AttributeValueMemberN{Value: "1"}, ":move": &types.AttributeValueMemberN{Value: strconv.Itoa(i.Move)},
								},
							}); err != nil {
								return err
							}
						}
					}
					return nil
				}, nil
			}}
			both(t, func(t *testing.T, virtual bool) {
				r := run(t, virtual, contended, moving)
				if r.Changes == 0 || r.Failed != 0 || (r.Lost > 0) != c.lost || (r.Extra > 0) != c.extra || (r.Imbalance != 0) != c.moving {
					t.Errorf("%d changes, %d failed, %d lost, %d extra, imbalance %d", r.Changes, r.Failed, r.Lost, r.Extra, r.Imbalance)
				}
			})
		})
	}
}

// What only virtual time has is refused in real time.
func TestPartitionsAreOfVirtualTime(t *testing.T) {
	if _, err := load.New(t, engine).Run(t.Context(), load.Workload{Partition: true}, adding(), load.Options{}); err == nil {
		t.Error("a limit in real time")
	}
	w := load.Workload{Workers: 64, Span: 2 * time.Second, Partition: true}
	if r := run(t, true, w, adding()); r.Rate > 1060 || r.Rate < 900 {
		t.Errorf("%v changes a second by one partition", r.Rate)
	}
}
