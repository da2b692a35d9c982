package once_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// many are more ids than an item has room for, several times.
const many = 200

// stocked gives the item so many that all ids can take one.
func (s *store) stocked(t *testing.T, n int) {
	t.Helper()
	rig.Must(s.plain.Update(t.Context(), key, func(_ context.Context, p *product) error { p.Stock = n; return nil }))(t)
}

// rows are those beside the item.
func (s *store) rows(t *testing.T) (rows []map[string]types.AttributeValue) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(rig.Client(), &dynamodb.ScanInput{TableName: &s.Table})
	for pages.HasMorePages() {
		page := rig.Must(pages.NextPage(t.Context()))(t)
		for _, row := range page.Items {
			if row["sku"].(*types.AttributeValueMemberS).Value != "apple" {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// entries is how many entries an item has.
func entries(raw map[string]types.AttributeValue) (n int) {
	for _, name := range []string{"once", "oncePast"} {
		if set, ok := raw[name].(*types.AttributeValueMemberBS); ok {
			n += len(set.Value)
		}
	}
	return n
}

// However many ids come within an epoch none is refused, each is made once, whichever call
// brings it again, and the item stays small: the others lie in rows that no reader sees, and
// that end by themselves.
func TestIDsAtAnyRate(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		s.stocked(t, many)
		calls := []string{"Update", "Apply", "Upsert"}
		most := 0
		for i := range many {
			rig.Must(taking[calls[i%3]](t.Context(), s.once(strconv.Itoa(i))))(t)
			most = max(most, entries(s.raw(t)))
		}
		for i := range many {
			v := s.once(strconv.Itoa(i))
			if rig.Must(taking[calls[(i+1)%3]](t.Context(), v))(t); !v.Repeated() {
				t.Errorf("id %d is forgotten", i)
			}
		}
		rig.Equal(t, s.stock(t), 0, "are left of %d", many)
		rows := s.rows(t)
		if most > 2*64 || len(rows) < many-2*64 {
			t.Errorf("the item has had %d ids; %d rows lie beside it", most, len(rows))
		}
		for _, row := range rows {
			ends, err := strconv.ParseInt(row["expiresAt"].(*types.AttributeValueMemberN).Value, 10, 64)
			if in := time.Until(time.Unix(ends, 0)); err != nil || in < 2*time.Hour || in > 4*time.Hour {
				t.Errorf("a row ends in %v, want more than twice and less than four times what ids are remembered", in)
			}
		}
		for item, err := range s.table.Scan(t.Context()) {
			if rig.Is(t, err); item.SKU != "apple" {
				t.Errorf("a reader sees %+v", item)
			}
		}
	})
}

// Fingerprints go along.
func TestFingerprintsAtAnyRate(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		s.stocked(t, many)
		for i := range many {
			rig.Must(taking["Update"](t.Context(), of(s.once(strconv.Itoa(i)), "a")))(t)
		}
		for i := range many {
			for name, do := range taking {
				if i%10 == 0 {
					_, err := do(t.Context(), of(s.once(strconv.Itoa(i)), "b"))
					rig.Is(t, err, repo.ErrMismatch)
					v := of(s.once(strconv.Itoa(i)), "a")
					if rig.Must(do(t.Context(), v))(t); !v.Repeated() {
						t.Errorf("%s: id %d is forgotten", name, i)
					}
				}
			}
		}
		rig.Equal(t, s.stock(t), 0, "are left of %d", many)
	})
}

// An item that an earlier program has filled, up to its limit, goes over by itself.
func TestAFullItemGoesOver(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		present, past := make([][]byte, 4096), make([][]byte, 4096)
		for i := range present {
			present[i], past[i] = id(fmt.Sprint("present ", i)), id(fmt.Sprint("past ", i))
		}
		s.set(t, "SET once = :a, oncePast = :p, onceEpoch = :e", map[string]types.AttributeValue{":a": set(present...), ":p": set(past...), ":e": number(now())})
		s.stocked(t, 100)
		before := entries(s.raw(t))
		for i := range 4 {
			for name, do := range taking {
				rig.Must(do(t.Context(), s.once(fmt.Sprint(name, i))))(t)
			}
		}
		if after := entries(s.raw(t)); after > before-12*200 {
			t.Errorf("the item had %d ids, and has %d", before, after)
		}
		for i := range present {
			if i%97 == 0 {
				for _, do := range taking {
					rig.Must(do(t.Context(), s.once(fmt.Sprint("present ", i))))(t)
					rig.Must(do(t.Context(), s.once(fmt.Sprint("past ", i))))(t)
				}
			}
		}
		rig.Equal(t, s.stock(t), 100-12, "are left")
	})
}

// overtaken is a network on which others come between a row's reading and the item's.
type overtaken struct {
	fault.Doer
	row     chan struct{} // closed when the row was read
	read    sync.Once
	coming  atomic.Bool // until they have come
	between func()
}

func (n *overtaken) Do(req *http.Request) (*http.Response, error) {
	if !n.coming.Load() {
		return n.Doer.Do(req)
	}
	body, err := fault.Body(req)
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(body), "dynahold:once") {
		resp, err := n.Doer.Do(req)
		n.read.Do(func() { close(n.row) })
		return resp, err
	}
	select {
	case <-n.row:
	case <-time.After(rig.Patience):
		return nil, errors.New("the row is read behind the item")
	}
	if n.coming.CompareAndSwap(true, false) {
		n.between()
	}
	return n.Doer.Do(req)
}

// A row is read beside the item. What another process has put there meanwhile is found all
// the same.
func TestARowIsReadAhead(t *testing.T) {
	for name, open := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, net := &store{Rig: rig.New(t)}, &overtaken{row: make(chan struct{})}
			others, _ := open(t, rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{}))(t), lease)
			client := rig.Client(func(o *dynamodb.Options) { net.Doer, o.HTTPClient = o.HTTPClient, net })
			s.table = rig.Must(repo.NewTable[product](client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.once, s.plain = open(t, s.table, lease)
			rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
			s.filled(t, many)
			for _, id := range []string{"a", "b"} { // goes over, and sees that
				rig.Must(s.once(id).Update(t.Context(), key, take))(t)
			}
			net.between = func() {
				for i := range 2 * 64 {
					rig.Must(others(fmt.Sprint("m", i)).Update(t.Context(), key, func(context.Context, *product) error { return nil }))(t)
				}
			}
			net.coming.Store(true)
			v := s.once("m0")
			if rig.Must(v.Update(t.Context(), key, take))(t); !v.Repeated() || entries(s.raw(t)) > 64 {
				t.Errorf("what another one has made was made again (%v), or has not gone to a row: %d are there", !v.Repeated(), entries(s.raw(t)))
			}
			rig.Equal(t, s.stock(t), 8, "are left")
		})
	}
}
