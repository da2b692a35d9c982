package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// rows are all rows of a table, by their keys.
func (n *night) rows(table string) []map[string]types.AttributeValue {
	n.Helper()
	out, err := n.client.Scan(n.Context(), scanOf(table))
	n.is(err)
	return out.Items
}

// What changes something by names that the items do not carry is refused before it writes:
// for every command, and every role.
func TestWritesByNamesThatNobodyHasAreRefused(t *testing.T) {
	n := newNight(t)
	mail := n.mail.ID()
	waits := n.lastOf("jobs list jobs mails", "id")
	held, err := n.permits.Acquire(t.Context(), "till")
	n.is(err)
	t.Cleanup(func() { _ = held.Release(context.WithoutCancel(t.Context())) })
	commands := [][2]string{
		{"locks break orders 1001 --token " + fmt.Sprint(n.order.Token()) + " --yes", "orders"},
		{"locks break locks nightly-report --token " + n.field("locks show locks nightly-report", "token") + " --yes", "locks"},
		{"jobs cancel jobs mails " + waits + " --yes", "jobs"},
		{"jobs break jobs mails " + mail + " --yes --token " + n.field("jobs show jobs mails "+mail, "token"), "jobs"},
		{"jobs requeue jobs orders " + n.job, "jobs"},
		{"jobs discard jobs orders " + n.job + " --yes", "jobs"},
		{"resources pause jobs mails --yes", "jobs"},
		{"resources resume jobs mails --yes", "jobs"},
		{"permits break jobs till " + held.ID() + " --yes", "jobs"},
		{"queue evict queues printer --number " + n.field("queue list queues printer", "number") + " --yes", "queues"},
	}
	roles := reflect.TypeFor[repo.Attributes]()
	for _, command := range commands {
		line, table := command[0], command[1]
		before := n.rows(table)
		for i := range roles.NumField() {
			role := roles.Field(i).Name
			line := line + " --attribute " + role + "=wrong"
			if code, out, errs := n.call("", line); code == exitOK || out != "" || !strings.Contains(errs, "wrong") {
				t.Errorf("%s: code %d, %s%s", line, code, out, errs)
			}
		}
		if after := n.rows(table); !reflect.DeepEqual(before, after) {
			t.Errorf("%s has changed\n%v\nto\n%v", line, before, after)
		}
	}
	for _, command := range commands {
		if !strings.Contains(command[0], "discard") { // it was requeued
			n.says(command[0], exitOK)
		}
	}
}

// lastOf is a field of the last element of what a command prints.
func (n *night) lastOf(line, name string) string {
	n.Helper()
	_, out, _ := n.call("", line+" -o json")
	i := strings.LastIndex(out, `"`+name+`": "`)
	if i < 0 {
		n.Fatalf("%s: no %q in %s", line, name, out)
	}
	value, _, _ := strings.Cut(out[i+len(name)+5:], `"`)
	return value
}

// Programs that have renamed the attributes: what the tool breaks by their names stays usable,
// and by others it breaks nothing, also where these are names of other attributes of the item.
func TestBreakUnderOtherNames(t *testing.T) {
	n := newNight(t)
	ctx := t.Context()
	names := repo.Attributes{LockedBy: "holder", LockTime: "until", LockLease: "span", LockHeld: "turn", LockToken: "turns", LockStolen: "gone", Writers: "authors"}
	flags := " --attribute LockedBy=holder --attribute LockTime=until --attribute LockLease=span --attribute LockHeld=turn --attribute LockToken=turns --attribute LockStolen=gone --attribute Writers=authors"
	table, err := repo.NewTable[order](n.client, "bills", repo.TableConfig{Attributes: names})
	n.is(err)
	n.is(table.EnsureTable(ctx))
	bills, err := lockedread.New(table, lockedread.Config{Owner: "till-7", Lease: time.Hour})
	n.is(err)
	_, err = bills.Upsert(ctx, repo.Key{Partition: "1"}, func(_ context.Context, o *order) error { o.Total = 5; return nil })
	n.is(err)
	held, err := bills.Acquire(ctx, repo.Key{Partition: "1"})
	n.is(err)
	n.set("bills", "1", "customer", word("Ann"))
	n.set("bills", "1", "paid", &types.AttributeValueMemberN{Value: "17"})
	line := "locks break bills 1 --yes --token "
	token := fmt.Sprint(held.Token())
	for _, with := range []struct{ was, is string }{
		{"LockedBy=holder", "LockedBy=customer"}, {"LockedBy=holder", "LockedBy=lockedBy"}, {"LockTime=until", "LockTime=paid"}, {"LockHeld=turn", "LockHeld=paid"},
		{"LockToken=turns", "LockToken=paid"}, {"LockTime=until", "LockTime=lockTime"}, {"LockLease=span", "LockLease=none"}, {"Writers=authors", "Writers=customer"},
		{" --attribute LockedBy=holder", ""}, {" --attribute LockToken=turns", ""}, {" --attribute LockTime=until", ""}, {flags, ""},
	} {
		before := n.rows("bills")
		for _, token := range []string{token, "17", "0"} {
			line := line + token + strings.Replace(flags, with.was, with.is, 1)
			if code, out, errs := n.call("", line); code == exitOK {
				t.Errorf("%s: %s%s", line, out, errs)
			}
		}
		if after := n.rows("bills"); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s has changed\n%v\nto\n%v", with.is, before, after)
		}
	}
	for _, with := range []string{" --attribute LockedBy=customer", " --attribute LockTime=total", " --attribute LockHeld=version", " --attribute LockToken=total"} {
		before := n.rows("orders")
		for _, token := range []string{fmt.Sprint(n.order.Token()), "1", "0"} {
			if code, out, errs := n.call("", "locks break orders 1001 --yes --token "+token+with); code == exitOK {
				t.Errorf("%s: %s%s", with, out, errs)
			}
		}
		if after := n.rows("orders"); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s has changed\n%v\nto\n%v", with, before, after)
		}
	}
	n.says(line+token+flags, exitOK, "broken")
	if _, err := held.Commit(ctx, held.Item()); !errors.Is(err, repo.ErrLockLost) {
		t.Errorf("its holder was told %v", err)
	}
	_, err = bills.Update(ctx, repo.Key{Partition: "1"}, func(_ context.Context, o *order) error { o.Total++; return nil })
	n.is(err)
	n.says("locks break bills 2 --yes --token 1"+flags, exitNothing, "nobody holds")
}

// A table's TTL is a name that it has, though none of its rows may carry it at the time.
func TestTheTTLOfATableIsOneOfItsNames(t *testing.T) {
	n := newNight(t)
	all, err := jobs.New[int](n.client, "tasks", jobs.Config{Table: repo.TableConfig{Attributes: repo.Attributes{TTL: "ends"}}})
	n.is(err)
	n.is(all.EnsureTable(t.Context()))
	_, err = all.Enqueue(t.Context(), "mails", 1)
	n.is(err)
	n.says("resources pause tasks mails --yes --attribute TTL=end", exitUsage, "TTL=end")
	n.says("resources pause tasks mails --yes --attribute TTL=ends", exitOK, "paused")
}

// set gives an item another attribute.
func (n *night) set(table, id, name string, v types.AttributeValue) {
	n.Helper()
	set := "SET #name = :v"
	_, err := n.client.UpdateItem(n.Context(), &dynamodb.UpdateItemInput{TableName: &table, Key: map[string]types.AttributeValue{"id": word(id)}, UpdateExpression: &set,
		ExpressionAttributeNames: map[string]string{"#name": name}, ExpressionAttributeValues: map[string]types.AttributeValue{":v": v}})
	n.is(err)
}
