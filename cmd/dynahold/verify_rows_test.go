package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/verify"
	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/history"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// account is an order whose mail, and whose seat in a row, nobody else has.
type account struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Version int64  `dynamodbav:"version" repo:"version"`
	Mail    string `dynamodbav:"mail" repo:"unique"`
	Row     string `dynamodbav:"row" repo:"unique=seat"`
	Seat    int    `dynamodbav:"seat" repo:"unique=seat"`
}

// withRows is a history of items with rows beside them: claims, commands of several
// processes, and more ids of operations than an item has room for.
func withRows(t *testing.T) *night {
	t.Helper()
	n := streamed(t, types.StreamViewTypeNewAndOldImages)
	table, err := repo.NewTable[account](n.client, "orders", repo.TableConfig{})
	n.is(err)
	accounts, err := optimistic.New(table, optimistic.Config{})
	n.is(err)
	locked, err := pessimistic.New(table, pessimistic.Config{})
	n.is(err)
	set := func(mail string) func(context.Context, *account) error {
		return func(_ context.Context, a *account) error { a.Mail = mail; return nil }
	}
	for i, id := range []string{"ann", "bob", "cid"} {
		_, err := accounts.Create(t.Context(), account{ID: id, Mail: id + "@example.org", Row: "a", Seat: i + 1})
		n.is(err)
	}
	_, err = locked.Update(t.Context(), repo.Key{Partition: "ann"}, set("new@example.org"))
	n.is(err)
	n.is(txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { // two swap their mails
		_, errAnn := accounts.In(tx).Update(ctx, repo.Key{Partition: "ann"}, set("bob@example.org"))
		_, errBob := accounts.In(tx).Update(ctx, repo.Key{Partition: "bob"}, set("new@example.org"))
		return errors.Join(errAnn, errBob)
	}))
	n.is(accounts.Delete(t.Context(), repo.Key{Partition: "cid"}))
	_, err = accounts.Create(t.Context(), account{ID: "dan", Mail: "cid@example.org", Row: "a", Seat: 3})
	n.is(err)

	w := n.writer(1, 0, history.New(io.Discard, history.Config{}))
	for i := range 200 {
		_, err := w.direct.Once(fmt.Sprint("operation-", i)).Upsert(t.Context(), repo.Key{Partition: "often"}, func(_ context.Context, o *order) error { o.Total++; return nil })
		n.is(err)
	}
	_, err = w.direct.Create(t.Context(), order{ID: "hot"})
	n.is(err)
	mail, err := delegate.NewMailTable(n.client, "mail", repo.TableConfig{})
	n.is(err)
	n.is(mail.EnsureTable(t.Context()))
	var all sync.WaitGroup
	for range 4 {
		orders, err := repo.NewTable[order](n.client, "orders", repo.TableConfig{})
		n.is(err)
		direct, err := optimistic.New(orders, optimistic.Config{})
		n.is(err)
		commands, err := delegate.New(direct, delegate.Config{Mail: mail})
		n.is(err)
		add, err := delegate.Command(commands, "add/v1", func(_ context.Context, o *order, more int) (int, error) { o.Total += more; return o.Total, nil })
		n.is(err)
		all.Go(func() {
			for range 30 {
				_, err := add.Do(t.Context(), repo.Key{Partition: "hot"}, 1)
				n.is(err)
			}
		})
	}
	all.Wait()
	return n
}

var (
	nightRounds = flag.Int("nightrounds", 8, "changes of each process in TestVerifyNight, at least")
	nightFor    = flag.Duration("nightfor", 0, "how long TestVerifyNight changes items, at least")
)

// What processes make of a table over a network that breaks is allowed, whatever they were
// told.
func TestVerifyNight(t *testing.T) {
	n := streamed(t, types.StreamViewTypeNewAndOldImages)
	seed := fixture.Seed(t)
	var lines bytes.Buffer
	record := history.New(&lines, history.Config{})
	var all sync.WaitGroup
	began := time.Now()
	for i := range uint64(4) {
		all.Go(func() {
			w := n.writer(seed+i, 0.1, record)
			for round := 0; round < *nightRounds || time.Since(began) < *nightFor; round++ {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				w.write(ctx)
				cancel()
			}
		})
	}
	all.Wait()
	n.is(record.Close())
	documents, calls := n.documents(), lines.String()
	file := filepath.Join(t.TempDir(), "night.json")
	n.is(os.WriteFile(file, []byte(documents+calls), 0o600))
	n.says("verify orders "+file, exitOK, "the protocol allows all of them")
	t.Logf("%d changes in a stream of %v, beside %d calls", strings.Count(documents, "\n"), time.Since(began).Round(time.Second), strings.Count(calls, "\n"))
}

func TestVerifyRows(t *testing.T) {
	n := withRows(t)
	n.says("verify orders", exitOK, "the protocol allows all of them")
	all := n.documents()
	in, err := verify.Read(strings.NewReader(all), "here")
	n.is(err)
	file := filepath.Join(t.TempDir(), "night.json")
	claim := func(owner, mail string) string { // the name of the claim's row, and whose it was last
		for _, c := range in.Changes {
			if by, some := c.After["uniqueClaim"].(*types.AttributeValueMemberM); some && strings.Contains(c.Name, ":mail:") &&
				text(by.Value["by"].(*types.AttributeValueMemberM).Value["id"]) == owner && text(lastOf(in.Changes, owner)["mail"]) == mail {
				return strings.Trim(strings.TrimPrefix(c.Name, "id="), `"`)
			}
		}
		t.Fatalf("no claim of %s", owner)
		return ""
	}
	danClaim := claim("dan", "cid@example.org")
	for name, plant := range map[string]plant{
		"a claim that goes to another":    {danClaim, verify.RuleUnique, "has got the claim, and not the value", one(func(i image) { i["uniqueClaim"] = lastOf(in.Changes, claim("bob", "new@example.org"))["uniqueClaim"] })},
		"a claim that is no longer there": {danClaim, verify.RuleUnique, "has lost the claim, and has the value still", one(func(i image) { clear(i) })},
		"a value of another": {"bob", verify.RuleUnique, "without its claim", one(func(i image) {
			writes(i, 1)
			count(i, 1)
			i["mail"] = &types.AttributeValueMemberS{Value: "cid@example.org"}
		})},
		"a value of two attributes":          {"bob", verify.RuleUnique, "without its claim", one(func(i image) { writes(i, 1); count(i, 1); i["seat"] = digits(9) })},
		"commands that are carried out anew": {"hot", verify.RuleCommand, "were carried out behind those number", one(func(i image) { writes(i, 1); count(i, 1); served(i, -1) })},
		"commands without a write":           {"hot", verify.RuleCommand, "nothing was written", one(func(i image) { served(i, 1) })},
		"an id that goes nowhere":            {"often", verify.RuleOnce, "not to a row beside it", one(func(i image) { writes(i, 1); count(i, 1); lose(i) })},
	} {
		t.Run(name, func(t *testing.T) {
			before := lastOf(in.Changes, plant.item)
			after := maps.Clone(before)
			keys := map[string]types.AttributeValue{"id": before["id"]}
			plant.changes[0](after, changesOf(in.Changes, plant.item))
			if len(after) == 0 {
				after = nil
			}
			n.finds(t, file, all+n.document(keys, verify.Change{Before: before, After: after, Time: time.Now().UTC().Add(time.Hour), Sequence: "1000000000"}), plant.rule, plant.says)
		})
	}
	n.is(os.Remove(file))
}

// served changes the number of the last commands of a sender.
func served(i image, more int) {
	d := maps.Clone(i["writersDelegated"].(*types.AttributeValueMemberM).Value)
	slots := maps.Clone(d["slots"].(*types.AttributeValueMemberM).Value)
	for slot, v := range slots {
		entry := v.(*types.AttributeValueMemberL).Value
		var seq, at int
		_, _ = fmt.Sscan(text(entry[0]), &seq, &at)
		entry = append([]types.AttributeValue{&types.AttributeValueMemberS{Value: fmt.Sprint(seq+more, " ", at)}}, entry[1:]...)
		slots[slot] = &types.AttributeValueMemberL{Value: entry}
		break
	}
	d["slots"] = &types.AttributeValueMemberM{Value: slots}
	i["writersDelegated"] = &types.AttributeValueMemberM{Value: d}
}

// lose takes all ids from an item, as if they had gone to rows.
func lose(i image) {
	var epoch, moved, moves int
	var rows string
	_, _ = fmt.Sscan(text(i["onceEpoch"]), &epoch, &moved, &moves, &rows)
	i["onceEpoch"] = &types.AttributeValueMemberS{Value: fmt.Sprint(epoch, " ", moved, " ", moves+1, " ", rows)}
	i["once"] = &types.AttributeValueMemberBS{Value: [][]byte{[]byte("another id..")}}
}
