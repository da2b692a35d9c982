package lockedread_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// byHand follows the article "Practical DynamoDB - Locking Reads" with the
// plain SDK: three expressions, integer Unix seconds, a string for the holder.
type byHand struct {
	b    bench
	name string
}

func (a byHand) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}}
}

func seconds(t time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.Unix(), 10)}
}

// acquire locks and reads; false: somebody else holds the item.
func (a byHand) acquire(t *testing.T, lease time.Duration) (map[string]types.AttributeValue, bool) {
	t.Helper()
	out, err := a.b.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &a.b.Table, Key: a.key(),
		UpdateExpression:    aws.String("SET lockTime = :until, lockedBy = :me"),
		ConditionExpression: aws.String("attribute_not_exists(lockTime) OR lockTime < :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":until": seconds(time.Now().Add(lease)), ":now": seconds(time.Now()), ":me": &types.AttributeValueMemberS{Value: a.name}},
		ReturnValues: types.ReturnValueAllNew,
	})
	return attributes(out), a.held(t, err)
}

func attributes(out *dynamodb.UpdateItemOutput) map[string]types.AttributeValue {
	if out == nil {
		return nil
	}
	return out.Attributes
}

// commit writes the count and releases; false: the lock is not ours any more.
func (a byHand) commit(t *testing.T, count int) bool {
	t.Helper()
	_, err := a.b.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &a.b.Table, Key: a.key(),
		UpdateExpression:         aws.String("SET #c = :count REMOVE lockTime, lockedBy"),
		ConditionExpression:      aws.String("lockedBy = :me AND lockTime > :now"),
		ExpressionAttributeNames: map[string]string{"#c": "count"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":count": &types.AttributeValueMemberN{Value: strconv.Itoa(count)}, ":now": seconds(time.Now()), ":me": &types.AttributeValueMemberS{Value: a.name}},
	})
	return a.held(t, err)
}

func (a byHand) held(t *testing.T, err error) bool {
	t.Helper()
	var refused *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	return err == nil
}

func TestArticleByHandIsKeptOutByOurLock(t *testing.T) {
	b := newBench(t)
	hand := byHand{b, "by hand"}
	h := acquire(t, b.locker(t, lockedread.Config{}))
	if _, ok := hand.acquire(t, time.Minute); ok {
		t.Fatal("a program that follows the article took a lock that we hold")
	}
	if hand.commit(t, 99) {
		t.Fatal("it committed without the lock")
	}
	if _, err := h.Commit(t.Context(), stock{ID: "apple", Count: 9}); err != nil {
		t.Fatal(err)
	}
	item, ok := hand.acquire(t, time.Minute)
	if !ok || item["count"].(*types.AttributeValueMemberN).Value != "9" {
		t.Fatalf("after our commit: %v, %v", ok, item)
	}
	if !hand.commit(t, 8) {
		t.Fatal("its commit was refused")
	}
	wantCount(t, b, 8)
}

func TestWeAreKeptOutByALockTakenByHand(t *testing.T) {
	b := newBench(t)
	hand := byHand{b, "by hand"}
	if _, ok := hand.acquire(t, time.Minute); !ok {
		t.Fatal("not acquired")
	}
	l := b.locker(t, lockedread.Config{})
	_, err := l.TryAcquire(t.Context(), key)
	var locked *repo.LockedError
	if !errors.As(err, &locked) || locked.Owner != "by hand" || locked.Token != 0 || time.Until(locked.Until) < 50*time.Second {
		t.Fatalf("%v (%+v)", err, locked)
	}
	_, err = l.Acquire(rig.Shortly(t), key)
	rig.Is(t, err, repo.ErrLocked)
	if !hand.commit(t, 7) {
		t.Fatal("its commit was refused")
	}
	h := acquire(t, l)
	rig.Equal(t, h.Item().Count, 7, "count after a commit by hand")
}

func TestTakeoversBetweenUsAndTheArticle(t *testing.T) {
	b := newBench(t)
	hand := byHand{b, "by hand"}
	l := b.locker(t, lockedread.Config{ClockSkew: -1})

	// We take over from a dead program.
	if _, ok := hand.acquire(t, -5*time.Second); !ok {
		t.Fatal("not acquired")
	}
	h := acquire(t, l)
	if hand.commit(t, 1) {
		t.Error("it committed after we took over")
	}

	// A program takes over from us, and commits.
	past := b.locker(t, lockedread.Config{ClockSkew: -1})
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	past.SetClock(-time.Minute) // our lease is over at once
	h = acquire(t, past)
	if _, ok := hand.acquire(t, time.Minute); !ok {
		t.Fatal("it could not take an expired lock")
	}
	_, err := h.Commit(t.Context(), stock{ID: "apple", Count: 2})
	rig.Is(t, err, repo.ErrLockLost)
	if !hand.commit(t, 3) {
		t.Error("its commit was refused")
	}
	wantCount(t, b, 3)
	// What it left of our lock attributes does not confuse the next holder.
	next := acquire(t, l)
	if next.Token() <= h.Token() {
		t.Errorf("token %d after %d", next.Token(), h.Token())
	}
	if _, err := next.Commit(t.Context(), stock{ID: "apple", Count: 4}); err != nil {
		t.Error(err)
	}

	// An operator breaks a hold by hand: its token is 0.
	if _, ok := hand.acquire(t, time.Minute); !ok {
		t.Fatal("not acquired")
	}
	if err := l.Break(t.Context(), key, 0); err != nil {
		t.Error(err)
	}
	if hand.commit(t, 5) {
		t.Error("it committed after its lock was broken")
	}
	wantCount(t, b, 4)
}

type versioned struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Count   int    `dynamodbav:"count"`
	Version int    `dynamodbav:"version" repo:"version"`
}

func TestOtherStrategiesRespectALockTakenByHand(t *testing.T) {
	b := newBench(t)
	hand := byHand{b, "by hand"}
	table := rig.Must(repo.NewTable[versioned](b.Client, b.Table, repo.TableConfig{}))(t)
	r := rig.Must(optimistic.New(table, optimistic.Config{FailLocked: true, ClockSkew: -1}))(t)
	add := func(_ context.Context, v *versioned) error { v.Count++; return nil }
	if _, ok := hand.acquire(t, time.Minute); !ok {
		t.Fatal("not acquired")
	}
	_, err := r.Update(t.Context(), key, add)
	rig.Is(t, err, repo.ErrLocked)
	if !hand.commit(t, 20) {
		t.Fatal("its commit was refused")
	}
	if got, err := r.Update(t.Context(), key, add); err != nil || got.Count != 21 {
		t.Errorf("%+v, %v", got, err)
	}
	// A dead program's lock is broken, and its late commit refused.
	if _, ok := hand.acquire(t, -5*time.Second); !ok {
		t.Fatal("not acquired")
	}
	if got, err := r.Update(t.Context(), key, add); err != nil || got.Count != 22 {
		t.Errorf("%+v, %v", got, err)
	}
	if hand.commit(t, 1) {
		t.Error("a dead program's commit was accepted")
	}
}
