package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

type product struct {
	SKU     string   `dynamodbav:"sku" repo:"pk"`
	Stock   int      `dynamodbav:"stock"`
	Log     []string `dynamodbav:"log,omitempty"`
	Version int64    `dynamodbav:"version" repo:"version"`
}

// applier is what both strategies offer.
type applier interface {
	repo.Repository[product]
	Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (product, error)
}

var key = repo.Key{Partition: "apple"}

func add(n int) expression.UpdateBuilder {
	return expression.Add(expression.Name("stock"), expression.Value(n))
}

func atLeast(n int) expression.ConditionBuilder {
	return expression.Name("stock").GreaterThanEqual(expression.Value(n))
}

// store is one table with a repository of each strategy, whose requests a test
// can act at, and others beside it.
type store struct {
	*rig.Rig
	act    *rig.Intercept
	mine   applier
	others applier
	locks  *pessimistic.Repository[product]
}

// each runs a test with each strategy on an item of ten.
func each(t *testing.T, test func(t *testing.T, s *store)) {
	strategies := map[string]func(*testing.T, *repo.Table[product]) applier{
		"optimistic": func(t *testing.T, table *repo.Table[product]) applier {
			return rig.Must(optimistic.New(table, optimistic.Config{}))(t)
		},
		"pessimistic": func(t *testing.T, table *repo.Table[product]) applier {
			return rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
		},
	}
	for name, make := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &store{Rig: rig.New(t)}
			s.act = &rig.Intercept{Client: s.Client}
			plain := rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, plain.EnsureTable(t.Context()))
			s.others = make(t, plain)
			s.locks = rig.Must(pessimistic.New(plain, pessimistic.Config{}))(t)
			s.mine = make(t, rig.Must(repo.NewTable[product](s.act, s.Table, repo.TableConfig{}))(t))
			rig.Must(s.others.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
			s.Count.Reset()
			test(t, s)
		})
	}
}

// set writes attributes as a stranger does.
func (s *store) set(t *testing.T, update string, values map[string]types.AttributeValue) {
	t.Helper()
	rig.Must(s.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.Table, UpdateExpression: aws.String(update),
		Key: map[string]types.AttributeValue{"sku": &types.AttributeValueMemberS{Value: "apple"}}, ExpressionAttributeValues: values}))(t)
}

func (s *store) stock(t *testing.T) int {
	t.Helper()
	return rig.Must(s.others.Get(t.Context(), key))(t).Stock
}

func TestOneRequest(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		got := rig.Must(s.mine.Apply(t.Context(), key, add(-3).Set(expression.Name("log"), expression.Value([]string{"sold 3"})), atLeast(3), atLeast(1)))(t)
		rig.Equal(t, s.Count.Total(), 1, "requests: %v", s.Count.Counts())
		if got.Stock != 7 || got.Version != 2 || len(got.Log) != 1 {
			t.Errorf("returned %+v", got)
		}
		if now := rig.Must(s.others.Get(t.Context(), key))(t); now.Stock != 7 || now.Version != 2 {
			t.Errorf("stored %+v", now)
		}
	})
}

// DynamoDB takes 300 operators and functions in an expression, and 100 values of an IN, those of
// the library included; an engine may take more.
func TestExpressionsThatDynamoDBWouldRefuse(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		enough, in := make([]expression.ConditionBuilder, 151), make([]expression.OperandBuilder, 101)
		for i := range enough {
			enough[i] = atLeast(1)
		}
		for i := range in {
			in[i] = expression.Value(i)
		}
		for name, c := range map[string]struct {
			conditions []expression.ConditionBuilder
			want       error
		}{
			"operators": {enough, repo.ErrTooLarge},
			"an IN":     {[]expression.ConditionBuilder{expression.Name("stock").In(in[0], in[1:]...)}, repo.ErrConfig},
		} {
			if _, err := s.mine.Apply(t.Context(), key, add(1), c.conditions...); !errors.Is(err, c.want) || s.Count.Total() != 0 {
				t.Errorf("%s: %v, after %d requests, want %v and none", name, err, s.Count.Total(), c.want)
			}
		}
		rig.Must(s.mine.Apply(t.Context(), key, add(1), append(enough[:120:120], expression.Name("stock").In(in[0], in[1:100]...))...))(t)
	})
}

func TestOwnConditionFails(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		got, err := s.mine.Apply(t.Context(), key, add(-11), atLeast(11))
		var refused *repo.ConditionError
		if !errors.Is(err, repo.ErrCondition) || !errors.As(err, &refused) || refused.Key != key || refused.Item.(product).Stock != 10 || got.Stock != 10 {
			t.Errorf("%+v, %v", got, err)
		}
		if s.Count.Total() != 1 || s.stock(t) != 10 {
			t.Errorf("%v, stock %d", s.Count.Counts(), s.stock(t))
		}
	})
}

func TestNoItem(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		_, err := s.mine.Apply(t.Context(), repo.Key{Partition: "pear"}, add(1))
		rig.Is(t, err, repo.ErrNotFound)
		rig.Is(t, s.others.Delete(t.Context(), key))
		_, err = s.mine.Apply(t.Context(), key, add(1), atLeast(1))
		rig.Is(t, err, repo.ErrNotFound)

		s.set(t, "SET tombstone = :yes", map[string]types.AttributeValue{":yes": &types.AttributeValueMemberBOOL{Value: true}})
		_, err = s.mine.Apply(t.Context(), key, add(1))
		rig.Is(t, err, repo.ErrNotFound)
	})
}

// The first condition that fails in a process shows no item where there is none, which a
// read confirms. One that has come between the two has refused nothing.
func TestAnItemThatComesBehindTheRefusal(t *testing.T) {
	for _, conditions := range [][]expression.ConditionBuilder{nil, {atLeast(1)}} {
		each(t, func(t *testing.T, s *store) {
			s.act.Get = func(n int) {
				if n == 1 {
					rig.Must(s.others.Create(t.Context(), product{SKU: "pear", Stock: 10}))(t)
				}
			}
			got := rig.Must(s.mine.Apply(t.Context(), repo.Key{Partition: "pear"}, add(1), conditions...))(t)
			rig.Equal(t, got.Stock, 11, "returned")
		})
	}
}

func TestWhatIsNotForAnExpressionToChange(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for _, name := range []string{"sku", "version", "lockedBy", "lockTime", "lockToken", "lockStub", "writers", "tombstone", "expiresAt", "lockQueue"} {
			if _, err := s.mine.Apply(t.Context(), key, expression.Set(expression.Name(name), expression.Value("x"))); !errors.Is(err, repo.ErrFixed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := s.mine.Apply(t.Context(), key, expression.UpdateBuilder{})
		rig.Is(t, err, repo.ErrConfig)
		_, err = s.mine.Apply(t.Context(), key, add(1), expression.ConditionBuilder{})
		rig.Is(t, err, repo.ErrConfig)
		_, err = s.mine.Apply(t.Context(), repo.Key{}, add(1))
		rig.Is(t, err, repo.ErrKey)
		rig.Equal(t, s.Count.Total(), 0, "sent %v", s.Count.Counts())
	})
}

// A held item is waited for: its holder must not see it change.
func TestAHeldItem(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		held := rig.Must(s.locks.Acquire(t.Context(), key))(t)
		done := make(chan error, 1)
		tried := make(chan struct{}, 100)
		s.act.Update = func(_ int, _ *dynamodb.UpdateItemInput, send func() (*dynamodb.UpdateItemOutput, error)) (*dynamodb.UpdateItemOutput, error) {
			out, err := send()
			tried <- struct{}{}
			return out, err
		}
		go func() {
			_, err := s.mine.Apply(t.Context(), key, add(1))
			done <- err
		}()
		<-tried
		<-tried // it has been refused, and has tried again
		item := held.Item()
		item.Stock += 5
		rig.Must(held.Commit(t.Context(), item))(t)
		rig.Is(t, <-done)
		rig.Equal(t, s.stock(t), 16, "stock")

		held = rig.Must(s.locks.Acquire(t.Context(), key))(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := s.mine.Apply(ctx, key, add(1))
			done <- err
		}()
		for range cap(tried) {
			select {
			case <-tried:
				continue
			default:
			}
			break
		}
		<-tried
		cancel()
		err := <-done
		rig.Is(t, err, repo.ErrLocked, context.Canceled)
		rig.Is(t, held.Release(t.Context()))
		rig.Equal(t, s.stock(t), 16, "stock")
	})
}

// What has the library's names and is not the library's is neither believed nor
// overwritten.
func TestForeignAttributes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for name, value := range map[string]types.AttributeValue{
			"writers": &types.AttributeValueMemberS{Value: "me"}, "lockToken": &types.AttributeValueMemberS{Value: "7"}, "lockedBy": &types.AttributeValueMemberBOOL{Value: true},
		} {
			s.set(t, "SET "+name+" = :v", map[string]types.AttributeValue{":v": value})
			_, err := s.mine.Apply(t.Context(), key, add(1))
			rig.Is(t, err, repo.ErrSchema)
			if !strings.Contains(err.Error(), name) {
				t.Errorf("it does not name the attribute: %v", err)
			}
			s.set(t, "REMOVE "+name, nil)
		}
		rig.Equal(t, s.stock(t), 10, "stock")
	})
}

// A kept item follows what an expression has made of it.
func TestWarmItemsFollow(t *testing.T) {
	s := rig.New(t)
	table := rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	r := rig.Must(optimistic.New(table, optimistic.Config{Warm: 1}))(t)
	rig.Must(r.Create(t.Context(), product{SKU: "apple"}))(t)
	change := func(_ context.Context, p *product) error { p.Stock++; return nil }
	for range 3 { // now it is believed
		rig.Must(r.Update(t.Context(), key, change))(t)
	}
	s.Count.Reset()
	rig.Must(r.Apply(t.Context(), key, add(10)))(t)
	if got := rig.Must(r.Update(t.Context(), key, change))(t); got.Stock != 14 || s.Count.Total() != 2 {
		t.Errorf("%+v after %v", got, s.Count.Counts())
	}
	// Others between: the item as kept is not believed.
	rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Update(t.Context(), key, change))(t)
	rig.Must(r.Apply(t.Context(), key, add(10)))(t)
	s.Count.Reset()
	if got := rig.Must(r.Update(t.Context(), key, change))(t); got.Stock != 26 || s.Count.Count("GetItem") != 1 {
		t.Errorf("%+v after %v", got, s.Count.Counts())
	}
}

// What Apply has written it has written, also where the item does not fit the type then.
func TestAnItemThatDoesNotFitAfterwards(t *testing.T) {
	type narrow struct {
		SKU     string `dynamodbav:"sku" repo:"pk"`
		Stock   uint8  `dynamodbav:"stock"`
		Version int64  `dynamodbav:"version" repo:"version"`
	}
	type once interface {
		repo.Repository[narrow]
		Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (narrow, error)
	}
	strategies := map[string]func(*repo.Table[narrow], bool) (once, func(id string) once){
		"optimistic": func(table *repo.Table[narrow], combine bool) (once, func(string) once) {
			r := rig.Must(optimistic.New(table, optimistic.Config{Combine: combine}))(t)
			return r, func(id string) once { return r.Once(id) }
		},
		"pessimistic": func(table *repo.Table[narrow], combine bool) (once, func(string) once) {
			r := rig.Must(pessimistic.New(table, pessimistic.Config{Combine: combine}))(t)
			return r, func(id string) once { return r.Once(id) }
		},
	}
	for name, open := range strategies {
		test := func(t *testing.T, combine bool) {
			s := rig.New(t)
			table := rig.Must(repo.NewTable[narrow](s.Client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, table.EnsureTable(t.Context()))
			plain, under := open(table, combine)
			rig.Must(plain.Create(t.Context(), narrow{SKU: "apple"}))(t)
			done := func(_ narrow, err error) {
				t.Helper()
				rig.Is(t, err, repo.ErrDone, repo.ErrSchema)
				if repo.VerdictOf(err) != repo.Written || repo.Retryable(err) {
					t.Errorf("%v: %v, retryable %v", err, repo.VerdictOf(err), repo.Retryable(err))
				}
			}
			step := func(_ context.Context, n *narrow) error { n.Stock++; return nil }
			done(plain.Apply(t.Context(), key, add(-1)))
			done(under("m").Apply(t.Context(), key, add(-1)))
			done(under("m").Apply(t.Context(), key, add(-1)))
			done(under("m").Update(t.Context(), key, step))
			done(under("m").Upsert(t.Context(), key, step))
			done(under("m").Create(t.Context(), narrow{SKU: "apple"}))
			_, err := under("n").Update(t.Context(), key, step)
			if repo.VerdictOf(err) != repo.NotWritten {
				t.Errorf("%v", err)
			}
			item := s.Item(t, map[string]types.AttributeValue{"sku": &types.AttributeValueMemberS{Value: "apple"}})
			rig.Equal(t, item["stock"].(*types.AttributeValueMemberN).Value, "-2", "stock")
		}
		t.Run(name, func(t *testing.T) { test(t, false) })
		t.Run(name+", combining", func(t *testing.T) { test(t, true) })
	}
}
