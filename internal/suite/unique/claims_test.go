package unique_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/unique"
)

// put writes items as a program does that knows no claims.
func put(t *testing.T, table string, emails map[string]string) {
	t.Helper()
	for id, email := range emails {
		_, err := rig.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row{
			"id": &types.AttributeValueMemberS{Value: id}, "email": &types.AttributeValueMemberS{Value: email}, "version": &types.AttributeValueMemberN{Value: "1"},
		}})
		rig.Is(t, err)
	}
}

// told is what a walk finds, in order.
func told(t *testing.T, all iter.Seq2[unique.Finding, error]) (texts []string) {
	t.Helper()
	for f, err := range all {
		rig.Is(t, err)
		text := fmt.Sprint(f.State, " ", f.Field, " ", f.Key.Partition)
		if f.State != unique.Double {
			text += fmt.Sprint(" ", f.Done)
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestATableFromBeforeIsClaimed(t *testing.T) {
	s := open(t, rig.New(t), "optimistic", lease)
	ctx := t.Context()
	rig.Is(t, s.table.EnsureTable(ctx))
	put(t, s.Table, map[string]string{"ann": "a", "bob": "b", "cid": "c"})
	s.make(t, customer{ID: "dan", Email: "d"})
	lost["deleted, as by a time to live"](t, s, "dan")
	s.make(t, customer{ID: "eve", Email: "e"})
	lost["changed"](t, s, "eve") // and is not claimed as it is
	put(t, s.Table, map[string]string{"fay": "a"})

	typed := unique.In(s.table.KeyTable)
	keys := rig.Must(repo.NewKeyTable(s.Client, s.Table, repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, repo.TableConfig{}))(t)
	tools := unique.In(rig.Must(keys.WithUnique(repo.UniqueOf{Attributes: map[string][]string{"email": {"email"}, "login": {"login", "tenant"}}}))(t))
	for _, c := range []*unique.Claims{typed, tools} {
		same(t, "check", told(t, c.Check(ctx)), "missing email ann false", "missing email bob false", "missing email cid false", "missing email eve false", "missing email fay false", "orphan email dan false", "orphan email eve false")
	}
	var doubles, done int
	for f, err := range tools.Repair(ctx) {
		rig.Is(t, err)
		switch {
		case f.State == unique.Double:
			doubles++
		case f.Done:
			done++
		default:
			t.Errorf("%+v", f)
		}
	}
	if doubles != 1 || done != 6 {
		t.Errorf("%d doubles, %d mended", doubles, done)
	}
	left := told(t, typed.Repair(ctx)) // again
	if len(left) != 1 || left[0] != "double email ann" && left[0] != "double email fay" {
		t.Errorf("%q", left)
	}
	_, err := s.Create(ctx, customer{ID: "new", Email: "b"})
	notUnique(t, err, "email", "bob", "\"b\"")
	n := 0
	for c, err := range tools.List(ctx) {
		rig.Is(t, err)
		if n++; c.Field != "email" {
			t.Errorf("%+v", c)
		}
	}
	rig.Equal(t, n, 4, "claims")
	rig.Must(s.Update(ctx, key("fay"), setEmail("f")))(t)
	rig.Must(s.Update(ctx, key("ann"), setNote("n")))(t)
	told(t, typed.Repair(ctx))
	same(t, "after all", told(t, typed.Check(ctx)))
	audit(t, s.Rig)
}

// A value that goes from one item to another, while a third one is looked at that has it too,
// is the other's.
func TestAClaimThatMovesMeanwhile(t *testing.T) {
	s := open(t, rig.New(t), "optimistic", lease)
	rig.Is(t, s.table.EnsureTable(t.Context()))
	s.make(t, customer{ID: "fay", Email: "a"})
	put(t, s.Table, map[string]string{"ann": "a"})
	peer := open(t, s.Peer(), "optimistic", lease)
	var asked, moved atomic.Bool
	s.Faults(func(op string, _ int, body []byte) fault.Kind {
		switch {
		case op != "TransactGetItems":
		case bytes.Contains(body, []byte(`"ann"`)):
			asked.Store(true)
		case asked.Load() && !moved.Swap(true):
			rig.Must(peer.Update(t.Context(), key("fay"), setEmail("f")))(t)
			peer.make(t, customer{ID: "dan", Email: "a"})
		}
		return fault.None
	})
	n := 0
	for f, err := range unique.In(s.table.KeyTable).Check(t.Context()) {
		rig.Is(t, err)
		if n++; f.State != unique.Double || f.Key != key("ann") || f.Owner != key("dan") {
			t.Errorf("%+v", f)
		}
	}
	rig.Equal(t, n, 1, "findings")
}

func TestClaimsAreRepairedBesideWriters(t *testing.T) {
	r := rig.New(t)
	first := open(t, r, "optimistic", lease)
	rig.Is(t, first.table.EnsureTable(t.Context()))
	before := map[string]string{}
	for i := range people {
		before[fmt.Sprintf("p%d", i)] = fmt.Sprintf("before %d", i)
	}
	put(t, r.Table, before)
	var writers sync.WaitGroup
	for _, strategy := range []string{"optimistic", "pessimistic"} {
		for range 2 {
			s := open(t, r.Peer(), strategy, lease)
			writers.Go(func() {
				for range rig.Share(40, 200) {
					if err := act(t.Context(), s.customers); !expected(err) {
						t.Errorf("%s: %v", strategy, err)
					}
				}
			})
		}
	}
	for range 3 {
		for f, err := range unique.In(first.table.KeyTable).Repair(t.Context()) {
			rig.Is(t, err)
			if f.State == unique.Double {
				t.Errorf("%+v", f)
			}
		}
	}
	writers.Wait()
	told(t, unique.In(first.table.KeyTable).Repair(t.Context()))
	same(t, "after all", told(t, unique.In(first.table.KeyTable).Check(t.Context())))
	audit(t, r)
}

// What fails for one row fails for all: a walk ends with it, and does not ask and tell for each.
func TestAWalkEndsWithWhatFails(t *testing.T) {
	s := open(t, rig.New(t), "optimistic", lease)
	rig.Is(t, s.table.EnsureTable(t.Context()))
	emails := map[string]string{}
	for i := range 20 {
		emails[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	put(t, s.Table, emails)
	c := unique.In(s.table.KeyTable)
	gone, leave := context.WithCancel(t.Context())
	defer leave()
	n := map[bool]int{} // found, and failed
	for _, err := range c.Repair(gone) {
		n[err == nil]++
		leave()
	}
	if n[true] != 1 || n[false] != 1 {
		t.Errorf("who leaves behind the first is told %v", n)
	}
	s.Faults(func(operation string, _ int, _ []byte) fault.Kind {
		if operation == "TransactGetItems" {
			return fault.Throttle
		}
		return fault.None
	})
	for f, err := range c.Check(t.Context()) {
		if n[false]++; err == nil || n[false] > 2 {
			t.Fatalf("throttled: %+v, %v", f, err)
		}
	}
}

// A mend without an answer is unknown, and can be made again.
func TestAMendWithoutAnAnswer(t *testing.T) {
	s := open(t, rig.New(t), "optimistic", lease)
	rig.Is(t, s.table.EnsureTable(t.Context()))
	put(t, s.Table, map[string]string{"ann": "a"})
	c := unique.In(s.table.KeyTable)
	s.Faults(func(operation string, _ int, _ []byte) fault.Kind {
		if operation == "TransactWriteItems" {
			return fault.LoseResponse
		}
		return fault.None
	})
	for f, err := range c.Repair(t.Context()) {
		if rig.Is(t, err, repo.ErrOutcomeUnknown); f.Done {
			t.Errorf("%+v", f)
		}
	}
	s.Faults(nil)
	told(t, c.Repair(t.Context()))
	same(t, "after all", told(t, c.Check(t.Context())))
}
