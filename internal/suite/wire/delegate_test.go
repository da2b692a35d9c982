package wire

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/bridge"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// commands are what one process has of the items, with a table of mail beside them, for the
// sort key is a number. What others write behind its first reading makes it lead.
type commands struct {
	all *delegate.Commands[item]
	add *delegate.Call[int, int]
}

func (b *bench) commands(t *testing.T, client *dynamodb.Client, mail string, others func()) commands {
	items := rig.Must(repo.NewTable[item](client, b.Table, repo.TableConfig{AttemptTimeout: time.Minute}))(t)
	rows := rig.Must(delegate.NewMailTable(client, mail, repo.TableConfig{AttemptTimeout: time.Minute}))(t)
	all := rig.Must(delegate.New(rig.Must(optimistic.New(items, optimistic.Config{}))(t), delegate.Config{Mail: rows}))(t)
	return commands{all, rig.Must(delegate.Command(all, "add/v1", func(_ context.Context, i *item, n int) (int, error) {
		if others != nil {
			others()
			others = nil
		}
		i.Balance, i.At = i.Balance+n, i.At+1
		return i.Balance, nil
	}))(t)}
}

// write is one of others, who know nothing of commands.
func (b *bench) write(t *testing.T, client *dynamodb.Client) func() {
	r := rig.Must(optimistic.New(rig.Must(repo.NewTable[item](client, b.Table, repo.TableConfig{}))(t), optimistic.Config{}))(t)
	return func() { rig.Must(r.Update(context.Background(), key, addOne))(t) }
}

// only is the network of one process of several: what others send is not recorded. Requests
// take a while, so that all comes in one order.
type only struct {
	recorded, others fault.Doer
}

func (b *bench) beside(t *testing.T, run func(t *testing.T, to only)) {
	var plain fault.Doer
	rig.Client(func(o *dynamodb.Options) { plain = o.HTTPClient })
	others := bridge.New(plain, 4)
	defer others.Close()
	b.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
		run(t, only{&rig.Mortal{Next: network, Latency: time.Millisecond}, &rig.Mortal{Next: others, Latency: time.Millisecond}})
	})
}

// storedByHand is the same item without its writers, as if it were put by hand.
func storedByHand(t *testing.T, b *bench) *repo.Table[item] {
	t.Helper()
	table := stored(t, b)
	rig.Must(rig.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.Table, Key: rig.Must(table.EncodeKey(key))(t), UpdateExpression: aws.String("REMOVE writers")}))(t)
	return table
}

func delegateOperations() (all []operation) {
	add := func(name string, once bool, put func(*testing.T, *bench) *repo.Table[item]) {
		all = append(all, operation{name: "delegate: " + name, again: true, prepare: func(t *testing.T, b *bench) func() error {
			put(t, b)
			c := b.commands(t, b.Client, rig.New(t).Table, nil)
			if once {
				c.add = c.add.Once("m")
			}
			return func() error { _, err := c.add.Do(t.Context(), key, 1); return err }
		}})
	}
	several := func(name string, run func(t *testing.T, b *bench, to only, mail string) error) {
		all = append(all, operation{name: "delegate: " + name, looks: true, prepare: func(t *testing.T, b *bench) func() error {
			stored(t, b)
			mail := rig.New(t).Table
			rig.Is(t, rig.Must(delegate.NewMailTable(b.Client, mail, repo.TableConfig{}))(t).EnsureTable(t.Context()))
			return func() (err error) {
				b.beside(t, func(t *testing.T, to only) { err = run(t, b, to, mail) })
				return err
			}
		}})
	}
	add("Do, alone", false, stored)
	add("Once.Do, alone", true, stored)
	add("Do, alone, on an item put by hand", false, storedByHand)
	several("Do, leading, and the end of that", func(t *testing.T, b *bench, to only, mail string) error {
		c := b.commands(t, rig.Client(rig.Over(to.recorded)), mail, b.write(t, rig.Client(rig.Over(to.others))))
		if _, err := c.add.Do(t.Context(), key, 1); err != nil {
			return err
		}
		return c.all.Close(context.Background())
	})
	several("Do, sent to who leads", func(t *testing.T, b *bench, to only, mail string) error {
		peer := rig.Client(rig.Over(to.others))
		leads := b.commands(t, peer, mail, b.write(t, peer))
		rig.Must(leads.add.Do(t.Context(), key, 1))(t)
		_, err := b.commands(t, rig.Client(rig.Over(to.recorded)), mail, nil).add.Do(t.Context(), key, 1)
		rig.Is(t, leads.all.Close(context.Background()))
		return err
	})
	several("Do, carrying out another's, too", func(t *testing.T, b *bench, to only, mail string) error {
		leads := b.commands(t, rig.Client(rig.Over(to.recorded)), mail, b.write(t, rig.Client(rig.Over(to.others))))
		rig.Must(leads.add.Do(t.Context(), key, 1))(t)
		_, err := b.commands(t, rig.Client(rig.Over(to.others)), mail, nil).add.Do(t.Context(), key, 1)
		rig.Is(t, leads.all.Close(context.Background()))
		return err
	})
	several("Do, taken back when its context has ended", func(t *testing.T, b *bench, to only, mail string) error {
		blind := &rig.Mortal{Next: to.others, Lost: func(op, _ string) (before, after bool) { return op == "Query", false }}
		leads := b.commands(t, rig.Client(rig.Over(blind)), mail, b.write(t, rig.Client(rig.Over(to.others))))
		rig.Must(leads.add.Do(t.Context(), key, 1))(t)
		sends := b.commands(t, rig.Client(rig.Over(to.recorded)), mail, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond) // its mail is sent then, and is not seen
		defer cancel()
		_, err := sends.add.Do(ctx, key, 1)
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, repo.ErrOutcomeUnknown) {
			err = nil // it is not applied
		} else {
			t.Errorf("told %v", err)
		}
		rig.Is(t, leads.all.Close(context.Background()))
		return err
	})
	return all
}
