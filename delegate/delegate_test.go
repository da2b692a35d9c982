package delegate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

type product struct {
	Shop    string `dynamodbav:"shop" repo:"pk"`
	ID      string `dynamodbav:"id" repo:"sk"`
	Stock   int    `dynamodbav:"stock"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

type take struct{ N int }

type left struct{ Stock int }

var errSoldOut = errors.New("sold out")

var apple = repo.Key{Partition: "s", Sort: "apple"}

func TestMain(m *testing.M) { rig.Main(m) }

func takeFrom(_ context.Context, p *product, a take) (left, error) {
	if p.Stock < a.N {
		return left{}, errSoldOut
	}
	p.Stock -= a.N
	return left{p.Stock}, nil
}

// program is what one program has of the table.
type program struct {
	items *optimistic.Repository[product]
	all   *delegate.Commands[product]
	take  *delegate.Call[take, left]
}

func open(t *testing.T, b *rig.Rig) *program {
	t.Helper()
	table := rig.Must(repo.NewTable[product](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	items := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	all := rig.Must(delegate.New(items, delegate.Config{Errors: map[string]error{"soldOut": errSoldOut}}))(t)
	return &program{items, all, rig.Must(delegate.Command(all, "take/v1", takeFrom))(t)}
}

func TestManyProcessesEachChangeOnce(t *testing.T) {
	b := rig.New(t)
	const processes, each = 8, 20
	first := open(t, b)
	rig.Must(first.items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: processes*each - 5}))(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	seen, soldOut := map[int]bool{}, 0
	for range processes {
		p := open(t, b.Peer())
		all.Go(func() {
			for range each {
				l, err := p.take.Do(t.Context(), apple, take{1})
				mu.Lock()
				switch {
				case errors.Is(err, errSoldOut):
					soldOut++
				case err != nil:
					t.Error(err)
				case seen[l.Stock]:
					t.Errorf("two were left %d", l.Stock)
				}
				if err == nil {
					seen[l.Stock] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	got := rig.Must(first.items.Get(t.Context(), apple))(t)
	if got.Stock != 0 || len(seen) != processes*each-5 || soldOut != 5 {
		t.Errorf("%d are left, %d were taken, %d were refused", got.Stock, len(seen), soldOut)
	}
	t.Log(got.Version)
}
