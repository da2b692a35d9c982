package unique_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

func TestMain(m *testing.M) { rig.MainOr(m, register) }

// customer has one attribute that is unique, and two that are so together.
type customer struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Email   string `dynamodbav:"email,omitempty" repo:"unique"`
	Tenant  string `dynamodbav:"tenant,omitempty" repo:"unique=login"`
	Login   string `dynamodbav:"login,omitempty" repo:"unique=login"`
	Note    string `dynamodbav:"note,omitempty"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

func key(id string) repo.Key { return repo.Key{Partition: id} }

// A store is a table of customers, and a strategy's way to them.
type store struct {
	*rig.Rig
	table *repo.Table[customer]
	customers
}

// customers are what every strategy offers.
type customers interface {
	repo.Repository[customer]
	In(tx *txn.Tx) repo.Repository[customer]
	Once(id string) repo.Repository[customer]
}

type byVersion struct {
	*optimistic.Repository[customer]
}

func (r byVersion) In(tx *txn.Tx) repo.Repository[customer]  { return r.Repository.In(tx) }
func (r byVersion) Once(id string) repo.Repository[customer] { return r.Repository.Once(id) }

type byLock struct {
	*pessimistic.Repository[customer]
}

func (r byLock) In(tx *txn.Tx) repo.Repository[customer]  { return r.Repository.In(tx) }
func (r byLock) Once(id string) repo.Repository[customer] { return r.Repository.Once(id) }

// openers open the strategies, by their names; leases are short for those that wait for
// what was left behind.
var openers = map[string]func(table *repo.Table[customer], lease time.Duration) (customers, error){
	"optimistic": func(table *repo.Table[customer], _ time.Duration) (customers, error) {
		return versions(table, optimistic.Config{Attempts: 1000})
	},
	"optimistic, warm and combining": func(table *repo.Table[customer], _ time.Duration) (customers, error) {
		return versions(table, optimistic.Config{Attempts: 1000, Warm: 100, Combine: true})
	},
	"optimistic, fair": func(table *repo.Table[customer], _ time.Duration) (customers, error) {
		return versions(table, optimistic.Config{Attempts: 1000, Fair: true})
	},
	"pessimistic": func(table *repo.Table[customer], lease time.Duration) (customers, error) {
		return locks(table, pessimistic.Config{Lease: lease})
	},
	"pessimistic, combining": func(table *repo.Table[customer], lease time.Duration) (customers, error) {
		return locks(table, pessimistic.Config{Lease: lease, Combine: true})
	},
	"pessimistic, racing": func(table *repo.Table[customer], lease time.Duration) (customers, error) {
		return locks(table, pessimistic.Config{Lease: lease, Race: true})
	},
}

func versions(table *repo.Table[customer], cfg optimistic.Config) (customers, error) {
	r, err := optimistic.New(table, cfg)
	return byVersion{r}, err
}

func locks(table *repo.Table[customer], cfg pessimistic.Config) (customers, error) {
	r, err := pessimistic.New(table, cfg)
	return byLock{r}, err
}

const lease = time.Minute

func open(t *testing.T, r *rig.Rig, strategy string, lease time.Duration) *store {
	t.Helper()
	s := &store{Rig: r, table: rig.Must(repo.NewTable[customer](r.Client, r.Table, repo.TableConfig{}))(t)}
	s.customers = rig.Must(openers[strategy](s.table, lease))(t)
	return s
}

// forAll runs a test for every strategy, on a table of its own.
func forAll(t *testing.T, test func(t *testing.T, s *store)) {
	for strategy := range openers {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			s := open(t, rig.New(t), strategy, lease)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.Count.Reset()
			test(t, s)
			audit(t, s.Rig)
		})
	}
}

func (s *store) make(t *testing.T, c customer) customer {
	t.Helper()
	return rig.Must(s.Create(t.Context(), c))(t)
}

// setEmail is a change.
func setEmail(email string) func(context.Context, *customer) error {
	return func(_ context.Context, c *customer) error { c.Email = email; return nil }
}

func setNote(note string) func(context.Context, *customer) error {
	return func(_ context.Context, c *customer) error { c.Note = note; return nil }
}

// row is what a table has, as DynamoDB has it.
type row = map[string]types.AttributeValue

func rows(t testing.TB, table string) (items, claims []row) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(rig.Client(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		for _, r := range rig.Must(pages.NextPage(context.Background()))(t).Items {
			switch {
			case strings.HasPrefix(text(r["id"]), "dynahold:unique:"):
				claims = append(claims, r)
			case r["tombstone"] == nil && r["lockStub"] == nil:
				items = append(items, r)
			}
		}
	}
	return items, claims
}

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// owner is whose a claim is, and of what.
func owner(claim row) (of, id string) {
	m := claim["uniqueClaim"].(*types.AttributeValueMemberM).Value
	return text(m["of"]), text(m["by"].(*types.AttributeValueMemberM).Value["id"])
}

// audit finds two items with one value, items without their claims, and claims without
// their items.
func audit(t testing.TB, r *rig.Rig) {
	t.Helper()
	items, claims := rows(t, r.Table)
	owners := map[string]string{} // of what has to be claimed
	want := map[string]int{}
	for _, i := range items {
		values := map[string]string{"email": text(i["email"]), "login": text(i["tenant"]) + "\x00" + text(i["login"])}
		if text(i["tenant"]) == "" || text(i["login"]) == "" {
			values["login"] = ""
		}
		for of, value := range values {
			if value == "" {
				continue
			}
			if other := owners[of+value]; other != "" {
				t.Errorf("%s %q is that of %s and of %s", of, value, other, text(i["id"]))
			}
			owners[of+value] = text(i["id"])
			want[of+" of "+text(i["id"])]++
		}
	}
	for _, c := range claims {
		of, id := owner(c)
		want[of+" of "+id]--
	}
	for what, n := range want {
		if n != 0 && !strings.Contains(what, " gone") { // whose items have lost their values on purpose
			t.Errorf("%s: %d claims are missing (too many where negative)", what, n)
		}
	}
}

// notUnique demands the error that names an attribute and an owner, and no value.
func notUnique(t testing.TB, err error, field, ofID, value string) {
	t.Helper()
	rig.Is(t, err, repo.ErrNotUnique)
	var e *repo.NotUniqueError
	if !as(err, &e) || e.Field != field || e.Owner.Partition != ofID {
		t.Errorf("%v: want the field %q and the owner %q", err, field, ofID)
	}
	if strings.Contains(fmt.Sprint(err), value) {
		t.Errorf("the error has the value: %v", err)
	}
}
