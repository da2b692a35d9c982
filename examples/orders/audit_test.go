package main

import (
	"context"
	"crypto/rand"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/localdb"
)

// TestTheAuditFindsWhatIsWrong lets clients buy from a server in this process, and then
// spoils one thing after another.
func TestTheAuditFindsWhatIsWrong(t *testing.T) {
	d, all := bought(t)
	faults := func() string {
		t.Helper()
		checks, err := d.audit(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, c := range checks {
			found = append(found, c.Faults...)
		}
		return strings.Join(found, "\n")
	}
	if found := faults(); found != "" {
		t.Fatalf("nothing is wrong, and found is %s", found)
	}
	var id string // of an order, with its customer
	var bought map[string]types.AttributeValue
	for _, p := range all {
		if p.order.Status == placed {
			id, bought = p.path(), orderKeyOf(p.customer, p.key)
		}
	}
	// set changes an attribute behind the library's back; without a value the item goes.
	set := func(table string, key map[string]types.AttributeValue, attribute string, value types.AttributeValue) {
		t.Helper()
		table = d.tables + table
		var err error
		if value == nil {
			_, err = d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key})
		} else {
			_, err = d.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: key, UpdateExpression: aws.String("SET #a = :v"),
				ExpressionAttributeNames: map[string]string{"#a": attribute}, ExpressionAttributeValues: map[string]types.AttributeValue{":v": value}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	key := func(name, value string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{name: text(value)}
	}
	for _, c := range []struct {
		says  string
		spoil func()
	}{
		{"products is locked", func() { set("products", key("sku", "p-01"), "lockedBy", text("ghost")) }},
		{"of p-01 -1 are left", func() { set("products", key("sku", "p-01"), "stock", number("-1")) }},
		{"of p-99 7 are left", func() { set("products", key("sku", "p-99"), "stock", number("7")) }},
		{"products are missing: map[p-02", func() { set("products", key("sku", "p-02"), "", nil) }},
		{"c-01 has 1 cents", func() { set("customers", key("id", "c-01"), "balance", number("1")) }},
		{"customers are missing: map[c-02", func() { set("customers", key("id", "c-02"), "", nil) }},
		{"order " + id + " costs 5", func() { set("orders", bought, "total", number("5")) }},
		{"order " + id + " is", func() { set("orders", bought, "status", text(cancelled)) }},
		{"notice " + id + "/cancelled never came", func() {}}, // of the order that says so now
		{"order " + id + " is missing", func() { set("orders", bought, "", nil) }},
		{"notice " + id + "/placed came, of no such order", func() {}},
		{"order c-01/stranger was never answered", func() { set("orders", orderKeyOf("c-01", "stranger"), "total", number("0")) }},
		{"notice late is left in the outbox", func() {
			set("notices", map[string]types.AttributeValue{"box": text(outbox), "id": text("late")}, "what", text(placed))
		}},
	} {
		before := faults()
		c.spoil()
		if found := faults(); !strings.Contains(found, c.says) {
			t.Errorf("no %q in\n%s\nbefore\n%s", c.says, found, before)
		}
	}
}

func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func orderKeyOf(customer, id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"customer": text(customer), "id": text(id)}
}

// stocked is a stage without servers, and the endpoint of its engine.
func stocked(t *testing.T) (d *stage, endpoint string) {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	d = &stage{settings: settings{tables: "orders-test-" + rand.Text()[:8] + "-"}, out: io.Discard, client: engine.Client(), market: newMarket()}
	if d.shop, err = openShop(d.client, d.tables); err == nil {
		err = d.fill(t.Context())
	}
	if err == nil {
		d.warehouse, err = openWarehouse()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.warehouse.close)
	return d, engine.Endpoint()
}

// bought is a stage without servers of its own, on which clients have bought.
func bought(t *testing.T) (*stage, []*purchase) {
	t.Helper()
	d, _ := stocked(t)
	server := httptest.NewServer(d.shop.api())
	t.Cleanup(server.Close)
	d.market.servers["s1"] = server.Listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	var relay sync.WaitGroup
	relay.Go(func() { d.shop.relay(ctx, d.warehouse.url) })
	defer relay.Wait()
	defer cancel()
	all := wishes(20, 3)
	if err := d.market.buy(ctx, all, 2, func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := d.relayed(ctx); err != nil {
		t.Fatal(err)
	}
	return d, all
}
