package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // for orders.jsonl
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"
)

//go:embed orders.jsonl
var builtIn []byte

// The kinds of lines.
const (
	kindStock  = "stock"
	kindOrder  = "order"
	kindStatus = "status"
)

// event is a line of the input.
type event struct {
	Kind     string    `json:"kind"`
	Event    string    `json:"event"` // id of a status event: breaks ties between equal times
	Order    string    `json:"order"`
	Customer string    `json:"customer"`
	Lines    []line    `json:"lines"`    // of an order
	Product  string    `json:"product"`  // of stock
	Quantity int64     `json:"quantity"` // of stock: how many pieces there are
	Status   string    `json:"status"`
	Time     time.Time `json:"time"`
}

// line is what an order wants of one product.
type line struct {
	Product  string `json:"product" dynamodbav:"product"`
	Quantity int64  `json:"quantity" dynamodbav:"quantity"` // pieces
	Price    int64  `json:"price" dynamodbav:"price"`       // cents for one piece
}

// total is what an order costs, in cents.
func (e event) total() (cents int64) {
	for _, l := range e.Lines {
		cents += l.Quantity * l.Price
	}
	return cents
}

// input is everything that was read, in the order of the lines.
type input struct {
	stock     []event
	events    []event // orders and status events, with their repetitions
	malformed []badLine
}

type badLine struct {
	number int
	err    error
}

// load reads the input named by the flag, unless it is interrupted: a reader
// that waits for a terminal or a pipe cannot be, and is left to itself.
func load(ctx context.Context, name string, stdin io.Reader) (*input, error) {
	type result struct {
		in  *input
		err error
	}
	loaded := make(chan result, 1)
	go func() {
		in, err := open(name, stdin)
		loaded <- result{in, err}
	}()
	select {
	case r := <-loaded:
		return r.in, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func open(name string, stdin io.Reader) (*input, error) {
	switch name {
	case "":
		return read(bytes.NewReader(builtIn))
	case "-":
		return read(stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return read(f)
}

// read parses all lines. A malformed one is noted and skipped; the error is
// that of r.
func read(r io.Reader) (*input, error) {
	in := &input{}
	known := identities{}
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if text = bytes.TrimSpace(text); len(text) > 0 {
			e, bad := parseLine(text)
			if bad == nil {
				bad = known.check(e)
			}
			switch {
			case bad != nil:
				in.malformed = append(in.malformed, badLine{number, bad})
			case e.Kind == kindStock:
				in.stock = append(in.stock, e)
			default:
				in.events = append(in.events, e)
			}
		}
		if errors.Is(err, io.EOF) {
			return in, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading line %d: %w", number, err)
		}
	}
}

// Bounds that keep sums far from overflow and keys within what DynamoDB takes.
const (
	maxQuantity = 1_000_000
	maxPrice    = 1_000_000_000
	maxID       = 256
	maxLines    = 20               // a transaction has at most 100 items
	maxAhead    = 30 * time.Minute // package nolock refuses events more than an hour ahead
)

func parseLine(text []byte) (event, error) {
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		return e, err
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	switch e.Kind {
	case kindStock:
		return e, errors.Join(id("product", e.Product), within("quantity", e.Quantity, 0, maxQuantity))
	case kindOrder:
		return e, errors.Join(id("order", e.Order), id("customer", e.Customer), products(e.Lines), when(e.Time))
	case kindStatus:
		return e, errors.Join(id("order", e.Order), id("event", e.Event), id("status", e.Status), when(e.Time))
	}
	return e, fmt.Errorf("kind is %q, want %q, %q or %q", e.Kind, kindStock, kindOrder, kindStatus)
}

// products checks the lines of an order.
func products(lines []line) error {
	errs := []error{within("number of lines", int64(len(lines)), 1, maxLines)}
	seen := map[string]bool{}
	for _, l := range lines {
		errs = append(errs, id("product", l.Product), within("quantity", l.Quantity, 1, maxQuantity), within("price", l.Price, 0, maxPrice))
		if seen[l.Product] {
			errs = append(errs, fmt.Errorf("product %q is in two lines", l.Product))
		}
		seen[l.Product] = true
	}
	return errors.Join(errs...)
}

func id(field, value string) error {
	if value == "" || len(value) > maxID {
		return fmt.Errorf("%s has %d bytes, want 1 to %d", field, len(value), maxID)
	}
	return nil
}

func within(field string, value, lo, hi int64) error {
	if value < lo || value > hi {
		return fmt.Errorf("%s is %d, want %d to %d", field, value, lo, hi)
	}
	return nil
}

func when(t time.Time) error {
	if t.IsZero() {
		return errors.New("time is missing")
	}
	if time.Until(t) > maxAhead {
		return fmt.Errorf("time is %s, which is in the future", t.Format(time.RFC3339))
	}
	return nil
}

// identities knows what each id stood for when it was first seen: a second
// delivery must say the same.
type identities map[string]event

func (known identities) check(e event) error {
	name := e.Kind + " "
	switch e.Kind {
	case kindStock:
		name += e.Product
		e.Time = time.Time{} // stock has no time
	case kindOrder:
		for _, l := range e.Lines {
			if _, ok := known[kindStock+" "+l.Product]; !ok {
				return fmt.Errorf("order %q is of product %q, of which no stock line came before", e.Order, l.Product)
			}
		}
		name += e.Order
	case kindStatus:
		name += e.Event
	}
	first, ok := known[name]
	if ok && !reflect.DeepEqual(first, e) {
		return fmt.Errorf("%s came before with other contents", name)
	}
	known[name] = e
	return nil
}
