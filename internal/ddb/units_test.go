package ddb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
)

func TestMain(m *testing.M) { rig.Main(m) }

// bench sends conditional writes to a table of its own.
type bench struct {
	client *dynamodb.Client // without faults
	table  string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{rig.Client(), "units-" + stored.NewID("")[1:]}
	_, err := b.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &b.table, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := b.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &b.table}); err != nil {
			t.Error(err)
		}
	})
	return b
}

// sender is a sender whose requests meet the faults that script says, and a
// count of them. Its client allows three attempts.
func (b *bench) sender(t *testing.T, script func(n int) fault.Kind, options ...func(*dynamodb.Options)) (*ddb.Table, *fault.Injector) {
	t.Helper()
	var in *fault.Injector
	client := dynamodb.New(b.client.Options(), append([]func(*dynamodb.Options){patience(3, ratelimit.None)}, append(options, func(o *dynamodb.Options) {
		in = fault.New(o.HTTPClient, fault.Config{Script: func(_ string, n int, _ []byte) fault.Kind { return script(n) }})
		o.HTTPClient = in
	})...)...)
	t.Cleanup(in.Wait)
	return &ddb.Table{Client: client, Name: b.table, Timeout: 10 * time.Second, Classify: asIs}, in
}

// patience is the SDK's standard policy without its waiting.
func patience(attempts int, limit retry.RateLimiter) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts, so.MaxBackoff, so.RateLimiter = attempts, time.Millisecond, limit
		})
	}
}

// add counts up on an item that must be at n = 0, or not be there.
func (b *bench) add(id string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: ddb.Item{"id": ddb.Text(id)},
		UpdateExpression:                    aws.String("ADD n :one"),
		ConditionExpression:                 aws.String("attribute_not_exists(n)"),
		ExpressionAttributeValues:           ddb.Item{":one": ddb.Number("1")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// applied is how often the write is in the item.
func (b *bench) applied(t *testing.T, id string) string {
	t.Helper()
	out, err := b.client.GetItem(context.WithoutCancel(t.Context()), &dynamodb.GetItemInput{
		TableName: &b.table, Key: ddb.Item{"id": ddb.Text(id)}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := out.Item["n"].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// ending is what a case expects.
type ending struct {
	outcome  ddb.Outcome
	clean    bool
	requests int
	applied  string
}

func (b *bench) check(t *testing.T, id string, in *fault.Injector, got ddb.Result, want ending) {
	t.Helper()
	in.Wait()
	if got.Outcome != want.outcome || got.Clean != want.clean || in.Requests() != want.requests || b.applied(t, id) != want.applied {
		t.Errorf("outcome %v, clean %v, %d requests, applied %q (%v); want %+v", got.Outcome, got.Clean, in.Requests(), b.applied(t, id), got.Err, want)
	}
	if (got.Err != nil) != (want.outcome == ddb.Refused || want.outcome == ddb.Unknown) {
		t.Errorf("outcome %v with error %v", got.Outcome, got.Err)
	}
	if want.outcome == ddb.Condition && !ddb.Equal(got.Image["n"], ddb.Number("1")) {
		t.Errorf("image %v", got.Image)
	}
	if got.Err != nil && (!strings.Contains(got.Err.Error(), "UpdateItem") || !strings.Contains(got.Err.Error(), b.table)) {
		t.Errorf("the error does not say what was done: %v", got.Err)
	}
}

func TestSender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, group := range map[string]func(*testing.T, *bench){
		"one fault": oneFault, "the same fault always": sameFault, "contexts": contexts, "never repeated": neverRepeated,
	} {
		t.Run(name, func(t *testing.T) { group(t, b) })
	}
}

func oneFault(t *testing.T, b *bench) {
	for kind, want := range map[fault.Kind]ending{
		fault.None:                {ddb.Applied, true, 1, "1"},
		fault.DropRequest:         {ddb.Applied, false, 2, "1"},
		fault.LoseResponse:        {ddb.Condition, false, 2, "1"},
		fault.CutResponse:         {ddb.Condition, false, 2, "1"},
		fault.Truncate:            {ddb.Condition, false, 2, "1"},
		fault.Empty:               {ddb.Applied, false, 2, "1"},
		fault.EmptyAfter:          {ddb.Condition, false, 2, "1"},
		fault.Resend:              {ddb.Condition, true, 1, "1"}, // one attempt, as far as anybody here can see
		fault.LateDuplicate:       {ddb.Applied, true, 1, "1"},
		fault.Delay:               {ddb.Applied, true, 1, "1"},
		fault.DelayResponse:       {ddb.Applied, true, 1, "1"},
		fault.Error500:            {ddb.Applied, false, 2, "1"},
		fault.Error500After:       {ddb.Condition, false, 2, "1"},
		fault.Throttle:            {ddb.Applied, true, 2, "1"},
		fault.TransactionConflict: {ddb.Applied, true, 2, "1"},
		fault.Refuse:              {ddb.Applied, true, 2, "1"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			s, in := b.sender(t, first(kind))
			id := "one " + kind.String()
			b.check(t, id, in, s.Update(t.Context(), b.add(id), ddb.Options{}), want)
		})
	}
}

func first(kind fault.Kind) func(int) fault.Kind {
	return func(n int) fault.Kind { return map[int]fault.Kind{0: kind}[n] }
}

func always(kind fault.Kind) func(int) fault.Kind { return func(int) fault.Kind { return kind } }

// The client's policy ends the repeating; the SDK repeats nothing besides.
func sameFault(t *testing.T, b *bench) {
	for kind, want := range map[fault.Kind]ending{
		fault.DropRequest:         {ddb.Unknown, false, 3, ""},
		fault.Error500:            {ddb.Unknown, false, 3, ""},
		fault.LoseResponse:        {ddb.Unknown, false, 3, "1"},
		fault.Truncate:            {ddb.Unknown, false, 3, "1"},
		fault.Throttle:            {ddb.Refused, true, 3, ""},
		fault.TransactionConflict: {ddb.Refused, true, 16 + 3, ""},
		fault.Refuse:              {ddb.Refused, true, 3, ""},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			s, in := b.sender(t, always(kind))
			id := "always " + kind.String()
			res := s.Update(t.Context(), b.add(id), ddb.Options{})
			b.check(t, id, in, res, want)
			if host := strings.TrimPrefix(*b.client.Options().BaseEndpoint, "http://"); !strings.Contains(res.Err.Error(), host) || !strings.Contains(res.Err.Error(), "region ") {
				t.Errorf("the error does not name the endpoint: %v", res.Err)
			}
		})
	}
	t.Run("no token for a repeat", func(t *testing.T) {
		s, in := b.sender(t, always(fault.Throttle), patience(5, ratelimit.NewTokenRateLimit(2*retry.DefaultRetryCost)))
		res := s.Update(t.Context(), b.add("token"), ddb.Options{})
		b.check(t, "token", in, res, ending{ddb.Refused, true, 3, ""})
	})
}

func contexts(t *testing.T, b *bench) {
	mine := errors.New("shutting down")
	for name, c := range map[string]struct {
		script func(int) fault.Kind
		opt    ddb.Options
		want   ending
	}{
		"before it was sent":                   {nil, ddb.Options{}, ending{ddb.Refused, true, 0, ""}},
		"before it was delivered, settled":     {first(fault.HoldRequest), ddb.Options{}, ending{ddb.Applied, false, 2, "1"}},
		"after it was delivered, settled":      {first(fault.HoldResponse), ddb.Options{}, ending{ddb.Condition, false, 2, "1"}},
		"before it was delivered, not settled": {first(fault.HoldRequest), ddb.Options{NoGrace: true}, ending{ddb.Unknown, false, 1, ""}},
		"after it was delivered, not settled":  {first(fault.HoldResponse), ddb.Options{NoGrace: true}, ending{ddb.Unknown, false, 1, "1"}},
		"and the settling fails, too": {func(n int) fault.Kind { return []fault.Kind{fault.HoldResponse, fault.LoseResponse}[n] },
			ddb.Options{}, ending{ddb.Unknown, false, 2, "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, in := b.sender(t, c.script)
			ctx, cancel := context.WithCancelCause(t.Context())
			if c.script == nil {
				cancel(mine)
			}
			go func() {
				select {
				case <-in.Held():
				case <-ctx.Done():
				}
				cancel(mine)
			}()
			res := s.Update(ctx, b.add(name), c.opt)
			b.check(t, name, in, res, c.want)
			if res.Err != nil && (!errors.Is(res.Err, context.Canceled) || !errors.Is(res.Err, mine)) {
				t.Errorf("error %v", res.Err)
			}
		})
	}
	t.Run("an attempt that takes too long is repeated", func(t *testing.T) {
		s, in := b.sender(t, first(fault.HoldResponse))
		go func() { <-in.Held() }()
		res := s.Update(t.Context(), b.add("slow"), ddb.Options{Timeout: 300 * time.Millisecond})
		b.check(t, "slow", in, res, ending{ddb.Condition, false, 2, "1"})
	})
}

func neverRepeated(t *testing.T, b *bench) {
	wrong := b.add("wrong")
	wrong.ConditionExpression = aws.String("nonsense(")
	missing := b.add("missing")
	missing.TableName = aws.String(b.table + "-missing")
	denied := errors.New("no session")
	for name, c := range map[string]struct {
		in       *dynamodb.UpdateItemInput
		option   func(*dynamodb.Options)
		requests int
	}{
		"an expression that cannot be": {wrong, func(*dynamodb.Options) {}, 1},
		"a table that is missing":      {missing, func(*dynamodb.Options) {}, 1},
		"a client without credentials": {b.add("denied"), func(o *dynamodb.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, denied })
		}, 0},
		"a client without an endpoint": {b.add("nowhere"), func(o *dynamodb.Options) { o.Region, o.BaseEndpoint = "", nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, in := b.sender(t, always(fault.None), c.option)
			res := s.Update(t.Context(), c.in, ddb.Options{})
			b.check(t, name, in, res, ending{ddb.Refused, true, c.requests, ""})
			var unsent *ddb.UnsentError
			if errors.As(res.Err, &unsent) != (c.requests == 0) {
				t.Errorf("error %v", res.Err)
			}
		})
	}
	t.Run("but an endpoint where nobody listens", func(t *testing.T) {
		s, in := b.sender(t, always(fault.None), func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:1") })
		res := s.Update(t.Context(), b.add("nobody"), ddb.Options{})
		b.check(t, "nobody", in, res, ending{ddb.Refused, true, 3, ""})
		if !strings.Contains(res.Err.Error(), "127.0.0.1:1") {
			t.Errorf("the error does not name the endpoint: %v", res.Err)
		}
	})
}

func TestEqualAndSize(t *testing.T) {
	n, b := ddb.Number, func(s string) types.AttributeValue { return ddb.Bytes([]byte(s)) }
	list := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	ns := func(v ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: v} }
	for _, c := range []struct {
		a, b  types.AttributeValue
		equal bool
		size  int // of a
	}{
		{ddb.Text("ä"), ddb.Text("ä"), true, 2},
		{b("abc"), b("abc"), true, 3},
		{n("1"), n("1.0"), true, 2},
		{n("-0"), n("0"), true, 3},
		{n("12345678901234567890"), n("12345678901234567891"), false, 12},
		{n("1e2"), n("100"), true, 3},
		{ddb.True(), &types.AttributeValueMemberBOOL{}, false, 1},
		{ns("1", "2"), ns("2.0", "1"), true, 4},
		{list(n("1"), list()), list(n("1.0"), list()), true, 3 + 1 + 2 + 1 + 3},
		{list(n("1"), n("2")), list(n("2"), n("1")), false, 3 + 3 + 3},
		{&types.AttributeValueMemberM{Value: ddb.Item{"ab": b("x")}}, &types.AttributeValueMemberM{}, false, 3 + 1 + 2 + 1},
		{&types.AttributeValueMemberNULL{Value: true}, nil, false, 1},
		{nil, nil, false, 1},
	} {
		if ddb.Equal(c.a, c.b) != c.equal || ddb.Equal(c.b, c.a) != c.equal || protocol.Size(ddb.Item{"name": c.a}) != 4+c.size {
			t.Errorf("%v and %v: equal %v; size %d, want %d", c.a, c.b, ddb.Equal(c.a, c.b), protocol.Size(ddb.Item{"name": c.a})-4, c.size)
		}
	}
}

// asIs is what a table gives to users where a test asks for the transport's own
// errors.
func asIs(err error) error { return err }
