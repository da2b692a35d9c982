package repo_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// creator switches TTL on at a word.
type creator struct {
	*dynamodb.Client
	begun, goOn chan struct{}
}

func (c creator) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	close(c.begun)
	<-c.goOn
	return c.Client.UpdateTimeToLive(ctx, in, o...)
}

// looker does something after its first look at a table's TTL.
type looker struct {
	*dynamodb.Client
	after func()
}

func (c looker) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	defer c.after()
	return c.Client.DescribeTimeToLive(ctx, in, o...)
}

// That a table has no TTL is told of one that has none, not of one whose creator is about
// to switch it on.
func TestNobodyIsWarnedWhileTheCreatorSwitchesTTLOn(t *testing.T) {
	type plain struct {
		ID string `dynamodbav:"id" repo:"pk"`
	}
	warned := func(client repo.Client, table string) bool {
		var log bytes.Buffer
		of := rig.Must(repo.NewTable[plain](client, table, repo.TableConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
		rig.Is(t, of.EnsureTable(t.Context()))
		return strings.Contains(log.String(), "dynahold.table.no_ttl")
	}
	r := rig.New(t)
	c := creator{r.Client, make(chan struct{}), make(chan struct{})}
	var creating sync.WaitGroup
	creating.Go(func() {
		if warned(c, r.Table) {
			t.Error("the creator is warned")
		}
	})
	<-c.begun
	if warned(looker{r.Client, sync.OnceFunc(func() { close(c.goOn); creating.Wait() })}, r.Table) {
		t.Error("somebody is warned while the creator switches TTL on")
	}
	none := rig.New(t)
	stopped, stop := context.WithCancel(t.Context())
	of := rig.Must(repo.NewTable[plain](switcher{none.Client, stop}, none.Table, repo.TableConfig{}))(t)
	if err := of.EnsureTable(stopped); err == nil {
		t.Error("the creator has not stopped")
	}
	if !warned(none.Client, none.Table) {
		t.Error("nobody is warned of a table without TTL")
	}
}

// switcher stops before it switches TTL on.
type switcher struct {
	*dynamodb.Client
	stop context.CancelFunc
}

func (c switcher) UpdateTimeToLive(ctx context.Context, _ *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	c.stop()
	return nil, ctx.Err()
}
