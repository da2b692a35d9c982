package main

import (
	"bytes"
	"cmp"
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

// purchase is what a client wants, and what came of it.
type purchase struct {
	key      string
	customer string
	lines    []line
	status   int   // of the answer that counts
	order    order // if it was placed
	cancel   bool  // the client wants to cancel it
}

func (p *purchase) orders() string { return "/customers/" + p.customer + "/orders" }

func (p *purchase) path() string { return order{Customer: p.customer, ID: p.key}.path() }

// again are answers, or none, after which a client asks again with the same key.
func again(status int) bool { return status == 0 || status >= http.StatusInternalServerError }

// market is the clients' side.
type market struct {
	client http.Client

	mu       sync.Mutex
	servers  map[string]string // guarded by mu, as all below: addresses by name
	open     map[string]int    // requests under way, by server
	done     int               // purchases
	repeats  int               // answers that were those of an earlier request
	lost     int               // requests without an answer
	busy     int               // answers that say to come again
	deposits map[string]int64  // what customers have paid in
}

func newMarket() *market {
	return &market{client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}},
		servers: map[string]string{}, open: map[string]int{}, deposits: map[string]int64{}}
}

// wishes are the purchases of a run. The same seed makes the same.
func wishes(n int, seed uint64) []*purchase {
	rng := rand.New(rand.NewPCG(seed, seed)) // repeatable on purpose
	popular := rand.NewZipf(rng, 1.2, 3, products-1)
	all := make([]*purchase, n)
	keys := map[string]int{}
	for i := range all {
		p := &purchase{customer: customerID(rng.IntN(customers)), cancel: rng.IntN(10) == 0}
		keys[p.customer]++
		p.key = fmt.Sprintf("purchase-%d", keys[p.customer]) // a key is its customer's: others have it too
		bought := map[uint64]bool{}
		for range 1 + rng.IntN(4) {
			if product := popular.Uint64(); !bought[product] {
				bought[product] = true
				p.lines = append(p.lines, line{SKU: productID(int(product)), Pieces: 1 + rng.Int64N(3)})
			}
		}
		all[i] = p
	}
	return all
}

// buy makes all purchases with so many clients side by side. after is told of each.
func (m *market) buy(ctx context.Context, all []*purchase, clients int, after func(done int)) error {
	return crew.Each(ctx, clients, all, func(ctx context.Context, p *purchase) error {
		err := m.purchase(ctx, p)
		m.mu.Lock()
		m.done++
		done := m.done
		m.mu.Unlock()
		after(done)
		return err
	})
}

// purchase is what a client does: it orders, some impatiently twice at once, pays in
// where its money is short, and cancels if it thinks better of it.
func (m *market) purchase(ctx context.Context, p *purchase) (err error) {
	body := map[string]any{"lines": p.lines}
	twin := make(chan error, 1)
	if len(p.lines)%2 == 0 {
		go func() {
			_, err := m.ask(ctx, p.orders(), p.key, body, nil)
			twin <- err
		}()
	} else {
		twin <- nil
	}
	p.status, err = m.ask(ctx, p.orders(), p.key, body, &p.order)
	if twinErr := <-twin; err != nil || twinErr != nil {
		return fmt.Errorf("%s: %w", p.path(), cmp.Or(err, twinErr))
	}
	if p.status == http.StatusConflict {
		// The twin may have had more luck, or this one if it asks once more: what
		// counts is what the shop says at last.
		if err := m.payIn(ctx, p); err != nil {
			return err
		}
		if p.status, err = m.ask(ctx, p.orders(), p.key, body, &p.order); err != nil {
			return err
		}
	}
	if p.status == http.StatusCreated && p.cancel {
		_, err = m.ask(ctx, p.orders()+"/"+p.key+"/cancellation", p.key+"/cancellation", nil, &p.order)
	}
	return err
}

const deposit = 5000 // cents

// payIn pays money in, for the next try.
func (m *market) payIn(ctx context.Context, p *purchase) error {
	status, err := m.ask(ctx, "/customers/"+p.customer+"/deposits", p.key+"/deposit", map[string]int64{"cents": deposit}, nil)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("the deposit of %s was answered with %d", p.path(), status)
	}
	m.mu.Lock()
	m.deposits[p.customer] += deposit
	m.mu.Unlock()
	return nil
}

// ask sends a request, and again, with the same key and to any server, until there is
// an answer that counts.
func (m *market) ask(ctx context.Context, path, key string, body, into any) (status int, err error) {
	for {
		status, err := m.try(ctx, path, key, body, into)
		switch {
		case ctx.Err() != nil:
			return status, context.Cause(ctx)
		case !again(status):
			return status, err
		}
		m.mu.Lock()
		if status == 0 {
			m.lost++
		} else {
			m.busy++
		}
		m.mu.Unlock()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// try sends a request once. Status 0: no answer.
func (m *market) try(ctx context.Context, path, key string, body, into any) (status int, err error) {
	server, address := m.begin()
	defer m.end(server)
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Idempotency-Key", key)
	r.GetBody = nil // else the transport, which knows that header, would ask again by itself
	resp, err := m.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.Header.Get("Idempotent-Replayed") != "" {
		m.mu.Lock()
		m.repeats++
		m.mu.Unlock()
	}
	if into != nil && resp.StatusCode < http.StatusMultipleChoices {
		err = json.Unmarshal(text, into)
	}
	return resp.StatusCode, err
}

// begin chooses a server for a request.
func (m *market) begin() (server, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for server, address = range m.servers { // in no certain order
		break
	}
	m.open[server]++
	return server, address
}

// closed takes a server out that is no more.
func (m *market) closed(server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, server)
}

func (m *market) end(server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[server]--
}

// busiest is the server with the most requests under way.
func (m *market) busiest() (server string, open int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.servers {
		if n := m.open[name]; server == "" || n > open {
			server, open = name, n
		}
	}
	return server, open
}
