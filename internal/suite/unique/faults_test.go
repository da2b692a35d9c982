package unique_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// ids are the customers of one run in a table of many.
type ids int

func (n ids) id(name string) string    { return fmt.Sprintf("%s %d", name, int(n)) }
func (n ids) key(name string) repo.Key { return key(n.id(name)) }

// call is a change, of which it can be seen whether it was applied.
type call struct {
	do   func(ctx context.Context, t *testing.T, s *store, n ids) error
	made func(emails map[string]string) bool // by the e-mails of those that there are
	// refused: it is to be refused with ErrNotUnique.
	refused bool
	// blind: it has nothing that could tell whether a request will still be applied.
	blind bool
}

// change changes the e-mail of one of them to that of a name.
func change(name, email string) func(ctx context.Context, t *testing.T, s *store, n ids) error {
	return func(ctx context.Context, _ *testing.T, s *store, n ids) error {
		_, err := s.Update(ctx, n.key(name), setEmail(n.id(email)))
		return err
	}
}

func create(name, email string) func(ctx context.Context, t *testing.T, s *store, n ids) error {
	return func(ctx context.Context, _ *testing.T, s *store, n ids) error {
		_, err := s.Create(ctx, customer{ID: n.id(name), Email: n.id(email)})
		return err
	}
}

func has(name, email string) func(map[string]string) bool {
	return func(emails map[string]string) bool { return emails[name] == email }
}

func calls() map[string]call {
	return map[string]call{
		"create":                  {do: create("cid", "c"), made: has("cid", "c")},
		"create with another's":   {do: create("cid", "a"), made: func(emails map[string]string) bool { _, there := emails["cid"]; return there }, refused: true, blind: true},
		"change":                  {do: change("ann", "c"), made: has("ann", "c")},
		"change to another's":     {do: change("ann", "b"), made: func(emails map[string]string) bool { return emails["ann"] != "a" }, refused: true},
		"change to what was lost": {do: change("ann", "gone"), made: has("ann", "gone")},
		"upsert": {
			do: func(ctx context.Context, _ *testing.T, s *store, n ids) error {
				_, err := s.Upsert(ctx, n.key("cid"), setEmail(n.id("c")))
				return err
			},
			made: has("cid", "c"),
		},
		"delete": {
			do:   func(ctx context.Context, _ *testing.T, s *store, n ids) error { return s.Delete(ctx, n.key("ann")) },
			made: func(emails map[string]string) bool { _, there := emails["ann"]; return !there },
		},
		"swap": {
			do: func(_ context.Context, t *testing.T, s *store, n ids) error {
				return s.run(t, func(ctx context.Context, in repo.Repository[customer]) error {
					_, err := in.Update(ctx, n.key("ann"), setEmail(n.id("b")))
					if err == nil {
						_, err = in.Update(ctx, n.key("bob"), setEmail(n.id("a")))
					}
					return err
				})
			},
			made: has("ann", "b"),
		},
	}
}

// TestVerdictsAreTrueUnderFaults breaks each request of each call in every way.
func TestVerdictsAreTrueUnderFaults(t *testing.T) {
	strategies := rig.Share([]string{"optimistic", "pessimistic"}, []string{"optimistic", "pessimistic", "optimistic, fair", "pessimistic, combining", "pessimistic, racing", "optimistic, warm and combining"})
	for _, strategy := range strategies {
		for name, c := range calls() {
			t.Run(strategy+", "+name, func(t *testing.T) {
				t.Parallel()
				s := open(t, rig.New(t), strategy, lease)
				rig.Is(t, s.table.EnsureTable(t.Context()))
				var n ids
				for _, kind := range fault.AllKinds() {
					for _, op := range []string{"TransactWriteItems", "UpdateItem", "GetItem"} {
						for nth := range rig.Share(2, 4) {
							broken(t, s, n, c, kind, op, nth)
							n++
						}
					}
				}
				audit(t, s.Rig)
			})
		}
	}
}

// broken makes a call of which one request is broken.
func broken(t *testing.T, s *store, n ids, c call, kind fault.Kind, op string, nth int) {
	ctx := t.Context()
	s.make(t, customer{ID: n.id("ann"), Email: n.id("a")})
	s.make(t, customer{ID: n.id("bob"), Email: n.id("b")})
	s.make(t, customer{ID: n.id("gone"), Email: n.id("gone")})
	s.without(t, n.id("gone"), "REMOVE email", nil)
	s.Nth(op, nth, kind)
	err := c.do(ctx, t, s, n)
	s.Faults(nil)
	s.Net.Wait()

	emails := map[string]string{}
	for _, name := range []string{"ann", "bob", "cid"} {
		item := s.Item(t, row{"id": &types.AttributeValueMemberS{Value: n.id(name)}})
		if len(item) > 0 && item["lockStub"] == nil {
			emails[name], _, _ = strings.Cut(text(item["email"]), " ")
		}
	}
	where := fmt.Sprintf("request %d of %s: %v: %v", nth, op, kind, err)
	switch verdict := repo.VerdictOf(err); {
	case c.refused && c.made(emails):
		t.Errorf("%s: applied", where)
	case c.refused && err == nil:
		t.Errorf("%s: said to be applied", where)
	case verdict == repo.Written && !c.made(emails), verdict == repo.NotWritten && c.made(emails):
		t.Errorf("%s: the items have %v", where, emails)
	case verdict == repo.Unknown && !c.blind:
		t.Errorf("%s: nobody knows", where)
	case errors.Is(err, repo.ErrNotUnique) != (c.refused && verdict == repo.NotWritten):
		t.Errorf("%s: not the error of the call", where)
	}
}
