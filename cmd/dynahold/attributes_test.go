package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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
	const hint = "--attribute LockedBy=holder"
	n.says("item show bills 1", exitOK, "nobody holds it", hint)
	n.says("locks show bills 1", exitNothing, "nobody holds", hint)
	n.says("locks list bills", exitUsage, `{"1"}`, hint)
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
	n.says("locks list bills", exitOK, "nobody holds a lock")
	if _, out, _ := n.call("", "item show bills 1"); strings.Contains(out, hint) {
		t.Errorf("of a free item: %s", out)
	}
}

// bill has attributes that look like a lock's.
type bill struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	V     int64  `dynamodbav:"version" repo:"version"`
	Total int64  `dynamodbav:"total"`
	At    int64  `dynamodbav:"at"`    // seconds
	Due   int64  `dynamodbav:"due"`   // seconds, when a lease may end
	Micro int64  `dynamodbav:"micro"` // microseconds, as tokens are
	Note  string `dynamodbav:"note"`
	Who   string `dynamodbav:"who"` // as the id of a holder
}

// Whatever attributes of an item are given for whatever of a lock's: it is broken as a whole
// and nothing else is touched, or nothing is.
func TestBreakByAnyNamesLeavesTheRest(t *testing.T) {
	n := newNight(t)
	ctx := t.Context()
	renamed := repo.Attributes{LockedBy: "holder", LockTime: "end", LockHeld: "turn", LockToken: "turns", LockLease: "span", LockStolen: "gone"}
	sets := [][]string{{"LockedBy"}, {"LockTime"}, {"LockLease"}, {"LockHeld"}, {"LockToken"}, {"LockStolen"}, {"Writers"}, {"LockHeld", "LockToken"}, {"LockedBy", "LockTime"}, {"LockTime", "LockLease"}}
	calls, broken := 0, 0
	for id, names := range map[string]repo.Attributes{"own": {}, "renamed": renamed} {
		table, err := repo.NewTable[bill](n.client, "bills", repo.TableConfig{Attributes: names})
		n.is(err)
		n.is(table.EnsureTable(ctx))
		b := &billed{n, table, id}
		held := b.lock()
		var present []string
		for name := range b.item() {
			if name != "id" {
				present = append(present, name)
			}
		}
		slices.Sort(present)
		for _, set := range sets {
			for i := range present {
				line := "locks break bills " + id + " --yes"
				for j, role := range set {
					line += " --attribute " + role + "=" + present[(i+3*j)%len(present)]
				}
				for _, token := range []string{fmt.Sprint(held.Token()), "0"} {
					before := b.item()
					calls++
					code, out, errs := n.call("", line+" --token "+token)
					switch {
					case code == exitOK && token != "0":
						broken++
						b.usable(line, held)
						held = b.lock()
					case !reflect.DeepEqual(before, b.item()):
						t.Fatalf("%s: code %d, %s%s: changed\n%v\nto\n%v", line, code, out, errs, before, b.item())
					}
				}
			}
		}
	}
	t.Logf("%d breaks by names of attributes of the item; %d broke the lock, by the right ones", calls, broken)
}

// billed is an item that is locked again and again.
type billed struct {
	*night
	table *repo.Table[bill]
	id    string
}

func (b *billed) key() repo.Key { return repo.Key{Partition: b.id} }

func (b *billed) filled(change bill) bill {
	now := time.Now()
	change.Total, change.At, change.Due, change.Micro, change.Note, change.Who = 7, now.Unix(), now.Add(time.Hour).Unix(), now.UnixMicro(), "x", "till-1#abcdefghijkl"
	return change
}

// lock makes the item anew, locked.
func (b *billed) lock() *lockedread.Held[bill] {
	b.Helper()
	bills, err := lockedread.New(b.table, lockedread.Config{Owner: "till-1", Lease: time.Hour})
	b.is(err)
	_, err = b.client.DeleteItem(b.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("bills"), Key: map[string]types.AttributeValue{"id": word(b.id)}})
	b.is(err)
	_, err = bills.Upsert(b.Context(), b.key(), func(_ context.Context, o *bill) error { *o = b.filled(*o); return nil })
	b.is(err)
	held, err := bills.Acquire(b.Context(), b.key())
	b.is(err)
	return held
}

func (b *billed) item() map[string]types.AttributeValue {
	b.Helper()
	out, err := b.client.GetItem(b.Context(), &dynamodb.GetItemInput{TableName: aws.String("bills"), ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{"id": word(b.id)}})
	b.is(err)
	return out.Item
}

// usable demands that another program changes the item, whose attributes are as they were.
func (b *billed) usable(line string, was *lockedread.Held[bill]) {
	b.Helper()
	want := was.Item()
	_ = was.Release(b.Context())
	bills, err := lockedread.New(b.table, lockedread.Config{Owner: "till-2", Wait: repo.Wait{Attempts: 1}})
	b.is(err)
	got, err := bills.Update(b.Context(), b.key(), func(context.Context, *bill) error { return nil })
	got.V, want.V = 0, 0
	if err != nil || got != want {
		b.Fatalf("%s: %v, %+v, want %+v", line, err, got, want)
	}
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
