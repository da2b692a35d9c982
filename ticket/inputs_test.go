package ticket_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

func TestBadInputs(t *testing.T) {
	b := newBench(t)
	configs := map[string]ticket.Config{
		"namespace with a slash":          {Namespace: "a/b"},
		"namespace that is not UTF-8":     {Namespace: "\xff"},
		"TTL on the last ticket":          {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "next"}}},
		"TTL on the number of entries":    {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "n"}}},
		"TTL on an entry":                 {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "w_12345678"}}},
		"TTL on an entry's end":           {Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "b_x"}}},
		"the name of another on an entry": {Table: repo.TableConfig{Attributes: repo.Attributes{LockedBy: "l_x"}}},
		"entries like ours":               {Table: repo.TableConfig{Attributes: repo.Attributes{LockQueue: "w_"}}},
		"lease too short":                 {Lease: time.Millisecond},
		"lease too long":                  {Lease: 25 * time.Hour},
		"negative lease":                  {Lease: -time.Second},
		"negative wait":                   {Wait: repo.Wait{Min: -1}},
		"negative attempt timeout":        {Table: repo.TableConfig{AttemptTimeout: -1}},
		"lease of less than three tries":  {Lease: 2 * time.Second, Table: repo.TableConfig{AttemptTimeout: time.Second}},
		"default lease of less than that": {Table: repo.TableConfig{AttemptTimeout: 11 * time.Second}},
	}
	for name, attributes := range map[string]repo.Attributes{
		"next": {TTL: "next"}, "n": {TTL: "n"}, "left": {LockedBy: "left"}, "queue": {TTL: "queue"}, "a ticket": {TTL: "w_x"},
		"an end": {Tombstone: "b_"}, "a lease": {Writers: "l_12345678"}, "no UTF-8": {TTL: "\xff"},
	} {
		configs["attribute: "+name] = ticket.Config{Table: repo.TableConfig{Attributes: attributes}}
	}
	for name, cfg := range configs {
		if _, err := ticket.New(b.Client, b.Table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ticket.New(b.Client, b.Table, ticket.Config{Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "end", LockQueue: "line"}}}); err != nil {
		t.Error(err)
	}
	if _, err := ticket.New(nil, b.Table, ticket.Config{}); !errors.Is(err, repo.ErrConfig) {
		t.Errorf("no client: %v", err)
	}
	if _, err := ticket.New(b.Client, "", ticket.Config{}); !errors.Is(err, repo.ErrConfig) {
		t.Errorf("no table: %v", err)
	}
	if _, err := ticket.New(b.Client, b.Table, ticket.Config{Lease: 3 * time.Second, Table: repo.TableConfig{AttemptTimeout: time.Second}}); err != nil {
		t.Error(err)
	}

	q := b.queue(t, ticket.Config{Namespace: "space"})
	long := strings.Repeat("x", 2048-len("space/"))
	calls := map[string]func(entity string) error{
		"Lock":    func(e string) error { _, err := q.Lock(t.Context(), e); return err },
		"TryLock": func(e string) error { _, err := q.TryLock(t.Context(), e); return err },
		"Join":    func(e string) error { _, err := q.Join(t.Context(), e); return err },
		"List":    func(e string) error { _, err := q.List(t.Context(), e); return err },
		"Do": func(e string) error {
			return q.Do(t.Context(), e, func(context.Context, *ticket.Turn) error { return nil })
		},
	}
	for name, call := range calls {
		for what, entity := range map[string]string{"empty": "", "too long": long + "x", "no UTF-8": "\xff"} {
			if err := call(entity); !errors.Is(err, repo.ErrKey) {
				t.Errorf("%s with a name that is %s: %v", name, what, err)
			}
		}
	}
	rig.Equal(t, b.Count.Total(), 0, "requests were sent for nothing")
	turn := rig.Must(q.TryLock(t.Context(), long))(t)
	done(t, turn)

	nowhere := rig.Must(ticket.New(b.Client, b.Table+"-missing", ticket.Config{}))(t)
	_, err := nowhere.Lock(t.Context(), "door")
	rig.Is(t, err, repo.ErrNoTable)
	_, err = nowhere.TryLock(t.Context(), "door")
	rig.Is(t, err, repo.ErrNoTable)
	_, err = nowhere.List(t.Context(), "door")
	rig.Is(t, err, repo.ErrNoTable)
}

func TestItemsThatAreNoQueues(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	one := ddb.Integer(1)
	for name, item := range map[string]ddb.Item{
		"ticket is text":    {"w_x": ddb.Text("1"), "b_x": one, "n": one, "next": one},
		"ticket has no end": {"w_x": one, "n": one, "next": one},
		"end is text":       {"w_x": one, "b_x": ddb.Text("1"), "n": one, "next": one},
		"lease is text":     {"w_x": one, "b_x": one, "l_x": ddb.Text("1"), "n": one, "next": one},
		"fraction":          {"w_x": ddb.Number("1.5"), "b_x": one, "n": one, "next": one},
		"next is text":      {"next": ddb.Text("1")},
		"n is text":         {"n": ddb.Text("1")},
		"left is text":      {"left": ddb.Text("1")},
	} {
		item["queue"] = ddb.Text("/door")
		b.put(t, item)
		if _, err := q.Lock(t.Context(), "door"); !errors.Is(err, repo.ErrSchema) {
			t.Errorf("Lock, %s: %v", name, err)
		}
		if _, err := q.TryLock(t.Context(), "door"); !errors.Is(err, repo.ErrSchema) {
			t.Errorf("TryLock, %s: %v", name, err)
		}
		if after := b.raw(t, "door"); len(after) > len(item)+4 { // counters and TTL may be there
			t.Errorf("%s: an entry stayed: %v", name, after)
		}
	}
	// An empty queue that claims to have entries would refuse TryLock for ever.
	b.put(t, ddb.Item{"queue": ddb.Text("/door"), "n": one})
	_, err := q.TryLock(t.Context(), "door")
	rig.Is(t, err, repo.ErrSchema)
}

func TestEnsureTableVerifies(t *testing.T) {
	b := newBench(t)
	q := b.queue(t, ticket.Config{})
	rig.Is(t, q.EnsureTable(t.Context()))
	out, err := b.Client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &b.Table})
	if err != nil || aws.ToString(out.TimeToLiveDescription.AttributeName) != "expiresAt" {
		t.Errorf("%+v, %v", out, err)
	}
}
