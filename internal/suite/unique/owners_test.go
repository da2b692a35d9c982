package unique_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// without changes an item as a program does that knows no claims.
func (s *store) without(t *testing.T, id, update string, values map[string]types.AttributeValue) {
	t.Helper()
	in := &dynamodb.UpdateItemInput{TableName: &s.Table, Key: row{"id": &types.AttributeValueMemberS{Value: id}}, UpdateExpression: &update}
	if values != nil {
		in.ExpressionAttributeValues = values
	}
	_, err := rig.Client().UpdateItem(t.Context(), in)
	rig.Is(t, err)
}

// lost makes an item lose its value without its claim.
var lost = map[string]func(t *testing.T, s *store, id string){
	"deleted, as by a time to live": func(t *testing.T, s *store, id string) {
		_, err := rig.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.Table, Key: row{"id": &types.AttributeValueMemberS{Value: id}}})
		rig.Is(t, err)
	},
	"changed": func(t *testing.T, s *store, id string) {
		s.without(t, id, "SET email = :e", row{":e": &types.AttributeValueMemberS{Value: "else"}})
	},
	"a tombstone": func(t *testing.T, s *store, id string) {
		s.without(t, id, "SET tombstone = :t", row{":t": &types.AttributeValueMemberBOOL{Value: true}})
	},
}

func TestAValueThatItsItemHasLostIsFree(t *testing.T) {
	for how, lose := range lost {
		for _, strategy := range []string{"optimistic", "pessimistic"} {
			t.Run(strategy+", "+how, func(t *testing.T) {
				t.Parallel()
				s := open(t, rig.New(t), strategy, lease)
				rig.Is(t, s.table.EnsureTable(t.Context()))
				for _, id := range []string{"ann", "bob", "cid"} {
					s.make(t, customer{ID: id, Email: id + "@x.org"})
					lose(t, s, id)
				}
				s.make(t, customer{ID: "new", Email: "ann@x.org"})
				rig.Must(s.Update(t.Context(), key("new"), setEmail("bob@x.org")))(t)
				rig.Is(t, s.run(t, func(ctx context.Context, in repo.Repository[customer]) error {
					_, err := in.Upsert(ctx, key("other"), setEmail("cid@x.org"))
					return err
				}))
				_, err := s.Create(t.Context(), customer{ID: "more", Email: "cid@x.org"})
				notUnique(t, err, "email", "other", "cid@x.org")
			})
		}
	}
}

// An item whose program knew no claims may change its value, though another has the claim.
func TestADoubleFromBeforeCanBeMended(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		s.make(t, customer{ID: "bob"})
		s.without(t, "bob", "SET email = :e", row{":e": &types.AttributeValueMemberS{Value: "a@x.org"}})
		rig.Must(s.Update(t.Context(), key("bob"), setNote("n")))(t)
		rig.Must(s.Update(t.Context(), key("bob"), setEmail("b@x.org")))(t)
		_, err := s.Create(t.Context(), customer{ID: "cid", Email: "a@x.org"})
		notUnique(t, err, "email", "ann", "a@x.org")
	})
}

func TestAHandleKeepsClaims(t *testing.T) {
	s := open(t, rig.New(t), "pessimistic", lease)
	ctx := t.Context()
	rig.Is(t, s.table.EnsureTable(ctx))
	r := s.customers.(byLock).Repository
	s.make(t, customer{ID: "ann", Email: "a@x.org"})
	s.make(t, customer{ID: "bob", Email: "b@x.org"})

	held := rig.Must(r.Acquire(ctx, key("bob")))(t)
	bob := held.Item()
	bob.Email = "a@x.org"
	_, err := held.Commit(ctx, bob)
	notUnique(t, err, "email", "ann", "a@x.org")
	bob.Email = "new@x.org" // the hold goes on
	bob = rig.Must(held.Commit(ctx, bob))(t)
	rig.Is(t, held.Release(ctx))
	rig.Equal(t, bob.Version, 2, "%+v", bob)
	made := rig.Must(r.Locker().AcquireOrCreate(ctx, key("cid")))(t)
	cid := made.Item()
	cid.Email = "b@x.org"
	rig.Must(made.Commit(ctx, cid))(t)
	gone := rig.Must(r.Acquire(ctx, key("ann")))(t)
	rig.Is(t, gone.Delete(ctx))
	s.make(t, customer{ID: "dan", Email: "a@x.org"})
	audit(t, s.Rig)
}

type numbered struct {
	ID    int    `dynamodbav:"id" repo:"pk"`
	Email string `dynamodbav:"email" repo:"unique"`
}

type timed struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	At    int64  `dynamodbav:"at" repo:"eventtime"`
	Email string `dynamodbav:"email" repo:"unique"`
}

type listed struct {
	ID   string   `dynamodbav:"id" repo:"pk"`
	Tags []string `dynamodbav:"tags" repo:"unique"`
}

type twice struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Email string `dynamodbav:"email" repo:"unique"`
	Other string `dynamodbav:"other" repo:"unique=email"`
}

type takes struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Claim string `dynamodbav:"uniqueClaim"`
	Email string `dynamodbav:"email" repo:"unique"`
}

func TestWhatCannotBeUniqueIsRefusedBeforehand(t *testing.T) {
	_, number := repo.NewTable[numbered](rig.Client(), "table", repo.TableConfig{})
	_, list := repo.NewTable[listed](rig.Client(), "table", repo.TableConfig{})
	_, double := repo.NewTable[twice](rig.Client(), "table", repo.TableConfig{})
	_, taken := repo.NewTable[takes](rig.Client(), "table", repo.TableConfig{})
	_, event := nolock.New(rig.Must(repo.NewTable[timed](rig.Client(), "table", repo.TableConfig{}))(t), nolock.Config{})
	for _, err := range []error{number, list, double, taken, event} {
		rig.Is(t, err, repo.ErrSchema)
	}
	// In a program with package txn the locker alone can do it, too.
	_, err := lockedread.New(rig.Must(repo.NewTable[timed](rig.Client(), "table", repo.TableConfig{}))(t), lockedread.Config{})
	rig.Is(t, err)
}

// composite has keys and values of other kinds.
type composite struct {
	PK      []byte  `dynamodbav:"pk" repo:"pk"`
	SK      int     `dynamodbav:"sk" repo:"sk"`
	Badge   float64 `dynamodbav:"badge" repo:"unique"`
	Print   []byte  `dynamodbav:"print" repo:"unique"`
	Phone   *string `dynamodbav:"phone" repo:"unique"`
	Version int64   `dynamodbav:"version" repo:"version"`
}

func TestOtherKindsOfKeysAndValues(t *testing.T) {
	r := rig.New(t)
	table := rig.Must(repo.NewTable[composite](r.Client, r.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	ctx := t.Context()
	all := map[string]repo.Repository[composite]{
		"optimistic":  rig.Must(optimistic.New(table, optimistic.Config{}))(t),
		"pessimistic": rig.Must(pessimistic.New(table, pessimistic.Config{}))(t),
	}
	for name, s := range all {
		pk := []byte(name)
		rig.Must(s.Create(ctx, composite{PK: pk, SK: 1, Badge: 1.50, Print: []byte{1, 2}, Phone: aws.String("1")}))(t)
		rig.Must(s.Create(ctx, composite{PK: pk, SK: 2}))(t) // nothing is claimed
		for field, c := range map[string]composite{"badge": {Badge: 1.5}, "print": {Print: []byte{1, 2}}, "phone": {Phone: aws.String("1")}} {
			c.PK, c.SK = pk, 3
			_, err := s.Create(ctx, c)
			rig.Is(t, err, repo.ErrNotUnique)
			var e *repo.NotUniqueError
			if !as(err, &e) || e.Field != field || string(e.Owner.Partition.([]byte)) != name {
				t.Errorf("%s: %v", field, err)
			}
		}
		rig.Is(t, s.Delete(ctx, repo.Key{Partition: pk, Sort: 1}))
	}
}

// person and firm share a table, and have an attribute of one name.
type person struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Kind  string `dynamodbav:"kind" repo:"type=person"`
	Email string `dynamodbav:"email" repo:"unique"`
}

type firm struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Kind  string `dynamodbav:"kind" repo:"type=firm"`
	Email string `dynamodbav:"email" repo:"unique"`
}

func TestTypesThatShareATableHaveTheirOwnValues(t *testing.T) {
	r := rig.New(t)
	people := rig.Must(repo.NewTable[person](r.Client, r.Table, repo.TableConfig{}))(t)
	rig.Is(t, people.EnsureTable(t.Context()))
	a := rig.Must(pessimistic.New(people, pessimistic.Config{}))(t)
	b := rig.Must(pessimistic.New(rig.Must(repo.NewTable[firm](r.Client, r.Table, repo.TableConfig{}))(t), pessimistic.Config{}))(t)
	rig.Must(a.Create(t.Context(), person{ID: "ann", Email: "a@x.org"}))(t)
	rig.Must(b.Create(t.Context(), firm{ID: "acme", Email: "a@x.org"}))(t)
	_, err := b.Create(t.Context(), firm{ID: "other", Email: "a@x.org"})
	rig.Is(t, err, repo.ErrNotUnique)
}
