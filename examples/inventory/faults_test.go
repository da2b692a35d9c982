package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// What follows goes wrong on purpose: tables are tampered with, programs are
// interrupted and killed, workers stop between two steps.

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// tampering changes a table behind the library's back.
type tampering struct {
	name                  string
	table                 int
	attribute, key, field string
	value                 types.AttributeValue // nil deletes the item
	says                  string
}

func (c tampering) do(t *testing.T, client *dynamodb.Client, prefix string) {
	t.Helper()
	table, key := prefix+tableNames[c.table], map[string]types.AttributeValue{c.attribute: text(c.key)}
	var err error
	if c.value == nil {
		_, err = client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
	} else {
		update := "SET #f = :v"
		_, err = client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: &update,
			ExpressionAttributeNames: map[string]string{"#f": c.field}, ExpressionAttributeValues: map[string]types.AttributeValue{":v": c.value}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTamperedTableFailsTheRun(t *testing.T) {
	engine, prefix := shared(t)
	args := []string{"-input", "-", "-prefix", prefix, "-keep"}
	runIt(t.Context(), small, args...).want(t, exitOK, "Kept the tables "+prefix)
	runIt(t.Context(), small, args...).want(t, exitFailed, "stock exists already")

	args = append(args, "-resume")
	again := runIt(t.Context(), small, args...)
	again.want(t, exitOK, "Nothing oversold")
	rig.Equal(t, again.row(t, "accepted")+again.row(t, "applied"), 0, "the same input again had effects")
	tampering{table: tableStock, attribute: "product", key: "tea", field: "left", value: number("1")}.do(t, engine.Client(), prefix)
	runIt(t.Context(), small, args...).want(t, exitFailed, "FAULT", "product tea has 1 left, want 0", "the audit found 1 fault")
}

func TestAuditFindsWhatIsWrong(t *testing.T) {
	engine, prefix := shared(t)
	no := &types.AttributeValueMemberBOOL{Value: false}
	for _, c := range []tampering{
		{"piece lost", tableStock, "product", "tea", "left", number("-1"), "product tea has -1 left, want 0"},
		{"oversold", tableStock, "product", "tea", "left", number("-1"), "product tea is oversold: -1 left"},
		{"locked", tableStock, "product", "tea", "lockedBy", text("ghost"), "product tea is still locked by ghost"},
		{"stock gone", tableStock, "product", "tea", "", nil, "product tea has no stock item"},
		{"new stock", tableStock, "product", "milk", "left", number("1"), "product milk is not in the input"},
		{"served in vain", tableStock, "product", "tea", "left", number("3"), "order o2 was rejected, but all that it wants is left: [{Product:tea Quantity:3"},
		{"half of an order", tableStock, "product", "cup", "left", number("4"), "product cup has 4 left, want 2"},
		{"half of a rejected order", tableStock, "product", "cup", "left", number("1"), "product cup has 1 left, want 2"},
		{"more pots for one who wanted cups too", tableStock, "product", "pot", "left", number("1"), "order o5 was rejected, but all that it wants is left"},
		{"refused after all", tableOrders, "order", "o3", "accepted", no, "product tea has 0 left, want 2"},
		{"invented", tableOrders, "order", "o7", "accepted", no, "order o7 is not in the input"},
		{"altered", tableOrders, "order", "o1", "lines", &types.AttributeValueMemberL{}, "order o1 is not as it was placed"},
		{"order gone", tableOrders, "order", "o2", "", nil, "order o2 was neither accepted nor rejected"},
		{"counted twice", tableCustomers, "customer", "ann", "orders", number("3"), "customer ann has {Customer:ann Orders:3"},
		{"overcharged", tableCustomers, "customer", "ann", "spent", number("1251"), "Spent:1251 LastOrder:o1}, want"},
		{"wrong last order", tableCustomers, "customer", "ann", "lastOrder", text("o3"), "LastOrder:o3}, want"},
		{"customer gone", tableCustomers, "customer", "ann", "", nil, "customer ann is missing"},
		{"stranger", tableCustomers, "customer", "eve", "orders", number("1"), "customer eve has no accepted order"},
		{"old status", tableStatus, "order", "o1", "status", text("paid"), `order o1 is "paid" by event e3, want "packed" by event e3`},
		{"status of a stranger", tableStatus, "order", "o7", "status", text("paid"), "the status of order o7 is not in the input"},
		{"status gone", tableStatus, "order", "o1", "", nil, "the status of order o1 is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, s := opened(t, engine, prefix+strings.ReplaceAll(c.name, " ", "-")+"-")
			if _, err := s.work(t.Context(), in, 1, console{quiet: true}); err != nil {
				t.Fatal(err)
			}
			c.do(t, engine.Client(), s.prefix)
			checks, err := audit(t.Context(), s, in)
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if (console{out: &out, err: &errs}).audit(checks) || !strings.Contains(errs.String(), c.says) {
				t.Errorf("the audit says\n%s%s\nwant %q", &out, &errs, c.says)
			}
		})
	}
}

// opened is a shop for the small input, on an engine of the test.
func opened(t *testing.T, engine *localdb.Engine, prefix string) (*input, *shop) {
	t.Helper()
	in, err := read(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	s, err := openShop(t.Context(), engine, options{prefix: prefix, lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(false); err != nil {
			t.Error(err)
		}
	})
	return in, s
}

// A worker that stops after each of its steps, and another that gets the
// message again.
func TestStoppedBetweenSteps(t *testing.T) {
	engine, prefix := shared(t)
	in, s := opened(t, engine, prefix)
	if err := s.fill(t.Context(), in.stock); err != nil {
		t.Fatal(err)
	}
	o1, o2, o3 := in.events[0], in.events[3], in.events[5]
	tally := &tally{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	decide := func(e event, want bool) {
		t.Helper()
		accepted, err := s.decide(t.Context(), e)
		must(err)
		rig.Equal(t, accepted, want, "order %s accepted", e.Order)
	}
	decide(o1, true)
	decide(o1, true) // stopped after step 1
	must(s.count(t.Context(), o1))
	must(s.count(t.Context(), o1)) // stopped after step 2
	decide(o2, false)
	decide(o2, false)
	must(s.order(t.Context(), o1, tally))
	must(s.order(t.Context(), o2, tally))
	must(s.order(t.Context(), o3, tally)) // drops o1 and o2 from what is open
	for _, late := range []event{o1, o2, o3} {
		must(s.order(t.Context(), late, tally))
		if err := s.count(t.Context(), late); late.Order != "o3" && err == nil {
			t.Errorf("a worker that was late counted order %s again", late.Order)
		}
	}
	if a, r, d := tally.accepted.Load(), tally.rejected.Load(), tally.duplicates.Load(); a != 2 || r != 1 || d != 3 {
		t.Errorf("%d accepted, %d rejected, %d duplicates; want 2, 1, 3", a, r, d)
	}
	tea, err := s.stock.Get(t.Context(), repo.Key{Partition: "tea"})
	must(err)
	ann, err := s.customers.Get(t.Context(), repo.Key{Partition: "ann"})
	must(err)
	if tea.Left != 0 || len(tea.Open) != 1 || ann.Orders != 2 || ann.Spent != 1250 || len(ann.Open) != 1 {
		t.Errorf("tea is %+v, ann is %+v", tea, ann)
	}
}

// A worker fails at the second product of an order; then a worker gets the
// message again, and another worker the next message of it.
func TestStoppedWithinATransaction(t *testing.T) {
	engine, prefix := shared(t)
	in, s := opened(t, engine, prefix)
	if err := s.fill(t.Context(), in.stock); err != nil {
		t.Fatal(err)
	}
	cup, pot, o4 := repo.Key{Partition: "cup"}, repo.Key{Partition: "pot"}, in.events[9]
	tally := &tally{}
	// The pot cannot be had from inside a change of the pot.
	_, err := s.stock.Update(t.Context(), pot, func(ctx context.Context, _ *stockItem) error { return s.order(ctx, o4, tally) })
	if err == nil {
		t.Fatal("the order got a pot that was being changed")
	}
	cups, err := s.stock.Get(t.Context(), cup)
	if err != nil || cups.Left != 4 {
		t.Errorf("%d cups are left, want 4 (%v)", cups.Left, err)
	}
	if err := unfinished(t.Context(), s.orders, o4.Order); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := s.order(t.Context(), o4, tally); err != nil {
			t.Fatal(err)
		}
		cups, err1 := s.stock.Get(t.Context(), cup)
		pots, err2 := s.stock.Get(t.Context(), pot)
		cid, err3 := s.customers.Get(t.Context(), repo.Key{Partition: "cid"})
		if err := errors.Join(err1, err2, err3); err != nil || cups.Left != 2 || pots.Left != 0 || cid.Orders != 1 || cid.Spent != 3000 {
			t.Errorf("%d cups and %d pots are left, cid is %+v (%v)", cups.Left, pots.Left, cid, err)
		}
	}
	if a, d := tally.accepted.Load(), tally.duplicates.Load(); a != 1 || d != 1 {
		t.Errorf("%d accepted, %d duplicates; want 1, 1", a, d)
	}
}

// itemsIn waits until a table has so many items.
func itemsIn(ctx context.Context, client *dynamodb.Client, table string, n int) error {
	for {
		items, err := scan[auditOrder](ctx, client, table)
		if err == nil && len(items) >= n {
			return nil
		}
		if err != nil && (!isNoTable(err) || ctx.Err() != nil) {
			return err
		}
		time.Sleep(5 * time.Millisecond) // the engine has orders to work on
	}
}

func TestInterruptedAndResumed(t *testing.T) {
	orders := rig.Share(60, 300)
	engine, prefix := shared(t)
	file := asFile(t, generated(t, "-seed", "9", "-orders", fmt.Sprint(orders)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waited := make(chan error, 1)
	go func() {
		waited <- itemsIn(t.Context(), engine.Client(), prefix+"orders", 10)
		cancel()
	}()
	r := runIt(ctx, "", "-input", file, "-prefix", prefix, "-keep")
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	r.want(t, exitInterrupted, "interrupted after", "no audit", "requests to")
	if n := r.row(t, "accepted"); n < 1 || n >= orders {
		t.Errorf("%d orders accepted before the interruption", n)
	}
	runIt(t.Context(), "", "-input", file, "-prefix", prefix, "-resume").want(t, exitOK, "Nothing oversold")
	runIt(t.Context(), "", "-input", file, "-prefix", prefix).want(t, exitOK) // the tables were deleted
}

func TestSideBySide(t *testing.T) {
	orders := rig.Share(24, 100)
	_, prefix := shared(t)
	file := asFile(t, generated(t, "-seed", "13", "-orders", fmt.Sprint(orders)))
	results := make([]result, 3)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			results[i] = runIt(t.Context(), "", "-input", file, "-prefix", prefix, "-resume", "-keep", "-workers", "4")
		})
	}
	wg.Wait()
	decided := 0
	for _, r := range results {
		r.want(t, exitOK, "Nothing oversold")
		decided += r.row(t, "accepted") + r.row(t, "rejected for lack of stock")
	}
	rig.Equal(t, decided, orders, "orders decided by all together")
}

func TestKilledAndResumed(t *testing.T) {
	engine, prefix := shared(t)
	file := asFile(t, generated(t, "-seed", "11", "-orders", rig.Share("60", "300")))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-input", file, "-prefix", prefix, "-lease", "1s", "-resume"}
	for _, orders := range []int{8, 18, 28} {
		program := exec.CommandContext(t.Context(), self, append(args, "-keep", "-workers", "3")...)
		program.Env = append(os.Environ(), asProgram+"=1")
		var printed bytes.Buffer
		program.Stdout, program.Stderr = &printed, &printed
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer cancel() // nobody waits for what a program does that is no more
			_ = program.Wait()
		}()
		waited := itemsIn(ctx, engine.Client(), prefix+"orders", orders)
		_ = program.Process.Kill()
		<-ended
		if program.ProcessState.Exited() {
			t.Fatalf("the program ended by itself, while the test waited for %d orders: %v\n%s", orders, waited, &printed)
		}
	}
	r := runIt(t.Context(), "", args...)
	r.want(t, exitOK, "Nothing oversold")
	if n := r.row(t, "duplicates"); n == 0 {
		t.Error("the killed programs had finished nothing")
	}
}
