package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// visitor is a customer, and what became of its wishes.
type visitor struct {
	id, email string // that it has at last
	desired   string // the address that it asks for first, which may be another's
	wishes    []*wish
}

// wish is an order, and what its customer was told of it.
type wish struct {
	order order
	pays  bool

	refused string // "": its seats were held
	invoice int    // 0: it was not paid
	late    bool   // it wanted to pay, and the seats were given back
}

const ordersEach = 4

func seatID(i int) string { return fmt.Sprintf("seat-%03d", i+1) }

// visitors are those of a run. The same seed makes the same. Every third asks for the
// address of the one before it.
func visitors(n int, seed uint64) []*visitor {
	rng := rand.New(rand.NewPCG(seed, seed)) // repeatable on purpose
	popular := rand.NewZipf(rng, 1.1, 8, uint64(seats(n)-1))
	all := make([]*visitor, n)
	for i := range all {
		v := &visitor{id: fmt.Sprintf("c-%04d", i+1)}
		v.desired = v.id + "@example.org"
		if i%3 == 1 {
			v.desired = all[i-1].desired
		}
		for k := range ordersEach {
			w := &wish{order: order{ID: fmt.Sprintf("%s-%d", v.id, k+1), Customer: v.id}, pays: rng.IntN(10) < 6}
			chosen := map[uint64]bool{}
			for range 1 + rng.IntN(3) {
				if s := popular.Uint64(); !chosen[s] {
					chosen[s] = true
					w.order.Seats = append(w.order.Seats, seatID(int(s)))
				}
			}
			v.wishes = append(v.wishes, w)
		}
		all[i] = v
	}
	return all
}

// seats are how many there are: fewer than customers want.
func seats(customers int) int { return 2 * customers }

// traffic is what customers have in common.
type traffic struct {
	client  http.Client
	address func(ctx context.Context) (string, error)

	mu       sync.Mutex
	done     int             // guarded by mu, as all below: customers
	times    []time.Duration // of requests with an answer that counts
	repeated int             // requests without such an answer
}

// visit lets all visit the shop, so many side by side. after is told of each that has.
func (c *traffic) visit(ctx context.Context, all []*visitor, atOnce int, after func(done int) error) error {
	return crew.Each(ctx, atOnce, all, func(ctx context.Context, v *visitor) error {
		err := c.one(ctx, v)
		c.mu.Lock()
		c.done++
		done := c.done
		c.mu.Unlock()
		if err != nil {
			return err
		}
		return after(done)
	})
}

// one is what a customer does: it registers, and then holds seats and pays some.
func (c *traffic) one(ctx context.Context, v *visitor) error {
	v.email = v.desired
	a, err := c.ask(ctx, "/customers/"+v.id, v.email)
	if err == nil && a.Refused == "email" {
		v.email = v.id + "@example.net"
		a, err = c.ask(ctx, "/customers/"+v.id, v.email)
	}
	if err != nil || a.Refused != "" {
		return fmt.Errorf("customer %s was refused, %q: %w", v.id, a.Refused, err)
	}
	for _, w := range v.wishes {
		body, err := json.Marshal(map[string]any{"customer": w.order.Customer, "seats": w.order.Seats})
		if err != nil {
			return err
		}
		if a, err = c.ask(ctx, "/orders/"+w.order.ID, string(body)); err != nil {
			return err
		}
		if w.refused = a.Refused; w.refused != "" || !w.pays {
			continue
		}
		if a, err = c.ask(ctx, "/orders/"+w.order.ID+"/payment", ""); err != nil {
			return err
		}
		w.invoice, w.late = a.Invoice, a.Refused == "gone"
	}
	return nil
}

// ask sends a request, and again, to any server, until there is an answer that counts.
func (c *traffic) ask(ctx context.Context, path, body string) (a answer, err error) {
	for {
		began := time.Now()
		address, err := c.address(ctx)
		if err != nil {
			return a, err
		}
		a, ok := c.try(ctx, "http://"+address+path, body)
		c.mu.Lock()
		if ok {
			c.times = append(c.times, time.Since(began))
		} else {
			c.repeated++
		}
		c.mu.Unlock()
		if ok {
			return a, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}

// try sends a request once. It is not ok if there was no answer, or that it may be asked
// again.
func (c *traffic) try(ctx context.Context, url, body string) (a answer, ok bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return a, false
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return a, false
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusConflict {
		return a, false
	}
	return a, json.Unmarshal(text, &a) == nil
}
