package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// named are locks around work that changes no item: the patterns of clients in use
// today, written by hand, and the locks of this library.
func named() []load.Contender {
	return []load.Contender{
		lockByHand(putDelete, rows.put), lockByHand(getPutDelete, rows.getAndPut), heartbeatRecord(),
		section("mutex, fail-closed, race", "", openMutex(mutex.Config{Race: true})),
		section("mutex, fail-open, race", "", openMutex(mutex.Config{Mode: mutex.FailOpen, Race: true})),
		section("mutex, fail-closed", "", openMutex(mutex.Config{})),
		section("mutex, fail-open", "", openMutex(mutex.Config{Mode: mutex.FailOpen})),
		section("ticket", tickets, func(ctx context.Context, client *dynamodb.Client, table string) (acquire, error) {
			q, err := ticket.New(client, table+tickets, ticket.Config{})
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, id string) (func(context.Context) error, error) {
				turn, err := q.Lock(ctx, id)
				if err != nil {
					return nil, err
				}
				return turn.Done, nil
			}, q.EnsureTable(ctx)
		}),
		section("item lock, race", "", openItems(lockedread.Config{Race: true})),
		section("item lock", "", openItems(lockedread.Config{})),
	}
}

// The patterns by hand.
const (
	putDelete    = "put, delete by hand"
	getPutDelete = "get, put, delete by hand"
	heartbeat    = "heartbeat record by hand"
)

// acquire waits for a lock and returns how it is given back.
type acquire func(ctx context.Context, id string) (release func(context.Context) error, err error)

// section is a contender that holds a lock while inside runs. beside is the ending of
// the name of the table that open makes for its locks.
func section(name, beside string, open func(context.Context, *dynamodb.Client, string) (acquire, error)) load.Contender {
	c := load.Contender{Name: name, Open: func(ctx context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		take, err := open(ctx, client, table)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
			release, err := take(ctx, items[0].ID)
			if err != nil {
				return err
			}
			inside(ctx)
			return release(ctx)
		}, nil
	}}
	if beside != "" {
		c.Beside = []string{beside}
	}
	return c
}

const (
	tickets   = "-tickets"
	lockLease = 30 * time.Second
)

// rowOf is the row of a named lock, beside the item with that name.
func rowOf(id string) string { return "lock-" + id }

func openMutex(cfg mutex.Config) func(context.Context, *dynamodb.Client, string) (acquire, error) {
	return func(_ context.Context, client *dynamodb.Client, table string) (acquire, error) {
		cfg.Key = repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}
		locks, err := mutex.New(client, table, cfg)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, id string) (func(context.Context) error, error) {
			l, err := locks.Lock(ctx, rowOf(id))
			if err != nil {
				return nil, err
			}
			return l.Unlock, nil
		}, nil
	}
}

func openItems(cfg lockedread.Config) func(context.Context, *dynamodb.Client, string) (acquire, error) {
	return func(_ context.Context, client *dynamodb.Client, table string) (acquire, error) {
		t, err := repo.NewTable[account](client, table, repo.TableConfig{})
		if err != nil {
			return nil, err
		}
		locks, err := lockedread.New(t, cfg)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, id string) (func(context.Context) error, error) {
			held, err := locks.Acquire(ctx, repo.Key{Partition: id})
			if err != nil {
				return nil, err
			}
			return held.Release, nil
		}, nil
	}
}

// rows are the rows of locks by hand.
type rows struct {
	client *dynamodb.Client
	table  string
}

var (
	freeIf      = aws.String("attribute_not_exists(id) OR expires < :now")
	ownIf       = aws.String("#owner = :me")
	ownerNames  = map[string]string{"#owner": "owner"}
	recordFree  = aws.String("attribute_not_exists(id) OR recordVersionNumber = :seen")
	recordOwn   = aws.String("recordVersionNumber = :seen")
	recordEnd   = aws.String("SET isReleased = :yes")
	recordLease = number(lockLease.Milliseconds())
)

// lockByHand is a row that exists while the lock is held. try makes one attempt to
// write it for an owner.
func lockByHand(name string, try func(rows, context.Context, string, string) (taken bool, err error)) load.Contender {
	return section(name, "", func(_ context.Context, client *dynamodb.Client, table string) (acquire, error) {
		r := rows{client, table}
		return func(ctx context.Context, id string) (func(context.Context) error, error) {
			me := rand.Text()
			var wait backoff
			for {
				taken, err := try(r, ctx, rowOf(id), me)
				if err != nil {
					return nil, err
				}
				if taken {
					return func(ctx context.Context) error { return r.remove(ctx, rowOf(id), me) }, nil
				}
				if err := wait.sleep(ctx); err != nil {
					return nil, err
				}
			}
		}, nil
	})
}

// put writes the row if there is none.
func (r rows) put(ctx context.Context, id, me string) (bool, error) {
	now := time.Now()
	_, err := r.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &r.table,
		Item:      map[string]types.AttributeValue{"id": str(id), "owner": str(me), "expires": number(now.Add(lockLease).Unix())},

		ConditionExpression:       freeIf,
		ExpressionAttributeValues: map[string]types.AttributeValue{":now": number(now.Unix())},
	})
	if conditionFailed(err) {
		return false, nil
	}
	return err == nil, err
}

// getAndPut reads first, and writes only where it has found no row.
func (r rows) getAndPut(ctx context.Context, id, me string) (bool, error) {
	out, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: key(id), ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) > 0 {
		return false, err
	}
	return r.put(ctx, id, me)
}

func (r rows) remove(ctx context.Context, id, me string) error {
	_, err := r.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &r.table, Key: key(id), ConditionExpression: ownIf, ExpressionAttributeNames: ownerNames,
		ExpressionAttributeValues: map[string]types.AttributeValue{":me": str(me)},
	})
	return err
}

// heartbeatRecord is the record of dynamolock and of AWS's lock client for Java: it
// stays, says whether it is released, and has another version with each owner and each
// heartbeat. A waiter takes it over when it has seen one version for the whole lease.
// Those clients sleep for a second between two looks; here they sleep as all peers do.
func heartbeatRecord() load.Contender {
	return section(heartbeat, "", func(_ context.Context, client *dynamodb.Client, table string) (acquire, error) {
		r := rows{client, table}
		return func(ctx context.Context, id string) (func(context.Context) error, error) {
			var wait backoff
			var seen types.AttributeValue
			var since time.Time
			for {
				out, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key(rowOf(id)), ConsistentRead: aws.Bool(true)})
				if err != nil {
					return nil, err
				}
				found := out.Item["recordVersionNumber"]
				if !same(found, seen) {
					seen, since = found, time.Now()
				}
				_, released := out.Item["isReleased"]
				if found == nil || released || time.Since(since) > lockLease {
					version, err := r.record(ctx, rowOf(id), found)
					if err == nil {
						return func(ctx context.Context) error { return r.endRecord(ctx, rowOf(id), version) }, nil
					}
					if !conditionFailed(err) {
						return nil, err
					}
				}
				if err := wait.sleep(ctx); err != nil {
					return nil, err
				}
			}
		}, nil
	})
}

// same reports whether two versions are one.
func same(a, b types.AttributeValue) bool {
	x, _ := a.(*types.AttributeValueMemberS)
	y, _ := b.(*types.AttributeValueMemberS)
	return x != nil && y != nil && x.Value == y.Value
}

// record takes the record over from the version that was seen.
func (r rows) record(ctx context.Context, id string, seen types.AttributeValue) (version types.AttributeValue, err error) {
	version = str(rand.Text())
	if seen == nil {
		seen = str("")
	}
	_, err = r.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &r.table,
		Item:      map[string]types.AttributeValue{"id": str(id), "ownerName": str(rand.Text()), "leaseDuration": recordLease, "recordVersionNumber": version},

		ConditionExpression:       recordFree,
		ExpressionAttributeValues: map[string]types.AttributeValue{":seen": seen},
	})
	return version, err
}

func (r rows) endRecord(ctx context.Context, id string, version types.AttributeValue) error {
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: key(id), UpdateExpression: recordEnd, ConditionExpression: recordOwn,
		ExpressionAttributeValues: map[string]types.AttributeValue{":seen": version, ":yes": str("1")},
	})
	return err
}
