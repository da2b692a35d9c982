// Command generate writes the input of the inventory example: one event per
// line, as JSON, in the order in which a queue would deliver them. The same
// flags always give the same file.
//
//	go run ./examples/inventory/generate -o examples/inventory/orders.jsonl
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// The shipped orders.jsonl was made with these defaults.
const (
	defaultSeed   = 20250314
	defaultOrders = 700
)

const (
	products  = 40
	customers = 150
	hotness   = 1.25 // exponent of the Zipf distribution of products
	redeliver = 0.08 // share of lines that a queue delivers twice
	pieces    = 3.0  // of an order, about: 1 to 3 of each of its 1 to 3 products
)

// line is one event. Its fields are those that the example reads; see
// ../input.go for what they mean.
type line struct {
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Event    string `json:"event,omitempty"`
	Order    string `json:"order,omitempty"`
	Customer string `json:"customer,omitempty"`
	Lines    []item `json:"lines,omitempty"`
	Product  string `json:"product,omitempty"`
	Quantity int    `json:"quantity,omitempty"`
	Status   string `json:"status,omitempty"`
	Time     string `json:"time"`

	at float64 // place in the stream
}

// item is a line of an order.
type item struct {
	Product  string `json:"product"`
	Quantity int    `json:"quantity"`
	Price    int    `json:"price"`
}

func main() {
	seed := flag.Uint64("seed", defaultSeed, "seed of the random numbers")
	orders := flag.Int("orders", defaultOrders, "number of distinct orders")
	output := flag.String("o", "", "output `file` (default standard output)")
	flag.Parse()
	if flag.NArg() > 0 || *orders < 1 {
		fmt.Fprintln(os.Stderr, "generate: no arguments are taken, and -orders must be positive")
		os.Exit(2)
	}
	if err := write(*output, generate(*seed, *orders)); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate makes stock lines first, then orders and status events. Orders
// arrive nearly in order; status events are badly shuffled.
func generate(seed uint64, orders int) []line {
	rng := rand.New(rand.NewPCG(seed, seed))
	popular := rand.NewZipf(rng, hotness, 2, products-1)
	regular := rand.NewZipf(rng, 1.1, 20, customers-1)
	opening := time.Date(2025, time.March, 14, 8, 0, 0, 0, time.UTC)

	var stock, stream []line
	prices := make([]int, products)
	for i := range products {
		prices[i] = 199 + 100*rng.IntN(150)
		// The stock follows demand, but the hottest products run out.
		demand := pieces * float64(orders) * share(i)
		left := max(1, int(demand*(0.6+0.1*float64(min(i, 8)))))
		stock = append(stock, line{Kind: "stock", Product: product(i), Quantity: left, Time: stamp(opening)})
	}
	at := opening
	for i := range orders {
		at = at.Add(time.Duration(1+rng.IntN(20_000)) * time.Millisecond)
		place := float64(i)
		o := line{Kind: "order", Order: fmt.Sprintf("o-%05d", i+1), Customer: fmt.Sprintf("c-%03d", regular.Uint64()+1),
			Time: stamp(at), at: place + 5*rng.Float64()}
		// Two of three orders are of one product.
		for wanted := 1 + max(0, rng.IntN(6)-3); len(o.Lines) < wanted; {
			p := int(popular.Uint64())
			if !slices.ContainsFunc(o.Lines, func(l item) bool { return l.Product == product(p) }) {
				o.Lines = append(o.Lines, item{product(p), 1 + rng.IntN(3), prices[p]})
			}
		}
		stream = append(stream, o)
		stream = append(stream, history(rng, o.Order, at, place)...)
	}
	for _, l := range stream[:len(stream):len(stream)] {
		if rng.Float64() < redeliver {
			l.at += 1 + 60*rng.Float64()
			stream = append(stream, l)
		}
	}
	return number(stock, stream)
}

// history is what happens to an order after it was placed, as far as it got.
func history(rng *rand.Rand, order string, at time.Time, place float64) []line {
	var events []line
	for i, status := range []string{"placed", "paid", "packed", "shipped", "delivered"} {
		if i > 1 && rng.IntN(8) == 0 {
			break
		}
		if i > 0 && rng.IntN(10) > 0 { // else two events of one millisecond: the event id decides
			at = at.Add(time.Duration(1+rng.IntN(7_200_000)) * time.Millisecond)
		}
		events = append(events, line{Kind: "status", Event: fmt.Sprintf("%s/%d", order, i+1), Order: order, Status: status,
			Time: stamp(at), at: place + 6*float64(i) + 30*rng.Float64()})
	}
	return events
}

// share is about how much of the demand falls on product i.
func share(i int) float64 {
	// Weights of rand.NewZipf(s=hotness, v=2): (v+i)^-s, normalised.
	weight, total := 0.0, 0.0
	for k := range products {
		w := math.Pow(2+float64(k), -hotness)
		total += w
		if k == i {
			weight = w
		}
	}
	return weight / total
}

// number puts the lines in order and gives message ids; the second delivery of
// a message has the id of the first.
func number(stock, stream []line) []line {
	slices.SortStableFunc(stream, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	lines := slices.Concat(stock, stream)
	ids := map[string]string{}
	for i := range lines {
		l := &lines[i]
		identity := fmt.Sprintf("%s %s %s %s", l.Kind, l.Event, l.Order, l.Product)
		if ids[identity] == "" {
			ids[identity] = fmt.Sprintf("m-%05d", len(ids)+1)
		}
		l.Message = ids[identity]
	}
	return lines
}

func write(name string, lines []line) (err error) {
	var to io.Writer = os.Stdout
	if name != "" {
		f, openErr := os.Create(name)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		to = f
	}
	buffered := bufio.NewWriter(to)
	encoder := json.NewEncoder(buffered)
	for _, l := range lines {
		if err := encoder.Encode(l); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

func product(i int) string { return fmt.Sprintf("p-%03d", i+1) }

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }
