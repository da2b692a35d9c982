package repo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/telemetry"
)

// EnsureTable creates the table if it does not exist (on-demand billing, TTL
// on, TableConfig.Indexes), waits until it is active as long as ctx allows, and verifies the
// key schema of an existing one, that it has those indexes, and that its TTL, if it is on, is
// on the attribute that the library uses (ErrSchema). It changes nothing of an existing table. If
// the call that creates the table ends before it is active, TTL stays off, as a
// warning of the next one says: of a table that is less than a minute old after a second
// in which its creator may switch TTL on. A global table with eventually consistent replicas is refused unless
// TableConfig.AllowReplicas is set. One with strong consistency, which has neither
// TTL nor transactions, is refused for what needs them: types with an event time,
// whose tombstones TTL removes, and the queues of package jobs (ErrSchema).
func (t *KeyTable) EnsureTable(ctx context.Context) error {
	desc, err := t.describe(ctx)
	created := errors.Is(err, ErrNoTable) || err == nil && desc.TableStatus == types.TableStatusCreating
	if errors.Is(err, ErrNoTable) {
		if err = t.create(ctx); err != nil {
			return err
		}
		desc, err = t.describe(ctx)
	}
	// A table that was just created may not be known everywhere yet.
	for (err == nil && t.unfinished(desc)) || (created && errors.Is(err, ErrNoTable)) {
		ddb.Sleep(ctx, 250*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("table %q, or an index of it, is still being created: %w", t.Name(), ddb.CtxError(ctx))
		}
		desc, err = t.describe(ctx)
	}
	if err != nil {
		return err
	}
	if s := desc.TableStatus; s != types.TableStatusActive && s != types.TableStatusUpdating {
		return fmt.Errorf("%w: table %q is %s", ErrSchema, t.Name(), s)
	}
	if err := t.verify(desc); err != nil {
		return err
	}
	if strong(desc) {
		return nil // it has no TTL to look at
	}
	return t.ensureTTL(ctx, created, desc)
}

func (t *KeyTable) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := ask(ctx, t, "DescribeTable", t.client.DescribeTable, &dynamodb.DescribeTableInput{TableName: &t.core.Name})
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

// ask sends a request that changes no item.
func ask[In, Out any](ctx context.Context, t *KeyTable, op string, call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), in *In) (out *Out, err error) {
	err = t.core.ReadWith(ctx, op, func(ctx context.Context, o func(*dynamodb.Options)) (_ any, err error) {
		out, err = call(ctx, in, o)
		return out, err
	})
	return out, err
}

func (t *KeyTable) create(ctx context.Context) error {
	in := &dynamodb.CreateTableInput{TableName: &t.core.Name, BillingMode: types.BillingModePayPerRequest}
	add := func(f field, role types.KeyType) {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &f.name, KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &f.name, AttributeType: types.ScalarAttributeType(f.kind)})
	}
	add(t.pk, types.KeyTypeHash)
	if t.sk.name != "" {
		add(t.sk, types.KeyTypeRange)
	}
	t.addIndexes(in)
	_, err := ask(ctx, t, "CreateTable", t.client.CreateTable, in)
	if is[*types.ResourceInUseException](err) {
		return nil // somebody else creates it right now, or an attempt without an answer did
	}
	return err
}

// verify compares an existing table with the type.
func (t *KeyTable) verify(desc *types.TableDescription) error {
	kinds := map[string]string{}
	for _, d := range desc.AttributeDefinitions {
		kinds[*d.AttributeName] = string(d.AttributeType)
	}
	have := map[types.KeyType]string{}
	for _, k := range desc.KeySchema {
		have[k.KeyType] = *k.AttributeName
	}
	for _, want := range []struct {
		word string
		role types.KeyType
		f    field
	}{{"partition", types.KeyTypeHash, t.pk}, {"sort", types.KeyTypeRange, t.sk}} {
		name := have[want.role]
		switch {
		case name != want.f.name:
			return fmt.Errorf("%w: table %q has the %s key %q, %q is expected", ErrSchema, t.Name(), want.word, name, want.f.name)
		case name != "" && kinds[name] != want.f.kind:
			return fmt.Errorf("%w: table %q has the %s key %q as %s, %s is expected", ErrSchema, t.Name(), want.word, name, kindName(kinds[name]), kindName(want.f.kind))
		}
	}
	switch {
	case strong(desc) && t.core.Transacts:
		return fmt.Errorf("%w: table %q is a global table with strong consistency, which has no transactions: jobs need a table in one Region", ErrSchema, t.Name())
	case strong(desc) && t.core.EventTime != "":
		return fmt.Errorf("%w: table %q is a global table with strong consistency, which has no TTL: the tombstones of a type with an event time would stay for ever; use a table in one Region", ErrSchema, t.Name())
	case len(desc.Replicas) > 0 && !strong(desc) && !t.cfg.AllowReplicas:
		return fmt.Errorf("%w: table %q is a global table with eventually consistent replicas: two Regions could change one item at once; set TableConfig.AllowReplicas if only one Region writes", ErrSchema, t.Name())
	}
	return t.verifyIndexes(desc, kinds)
}

// strong reports whether a table is a global table with strong consistency. Such
// a table has neither transactions nor TTL.
func strong(desc *types.TableDescription) bool {
	return desc.MultiRegionConsistency == types.MultiRegionConsistencyStrong
}

// ensureTTL switches the TTL of a new table on, which removes stubs and
// tombstones that nobody comes back to. Nothing depends on when it does. That of
// an existing table is its owner's to switch on: its items may have the
// attribute with another meaning.
func (t *KeyTable) ensureTTL(ctx context.Context, created bool, desc *types.TableDescription) error {
	attr, err := t.ttlAttribute(ctx)
	for looks := 0; err == nil && attr == "" && !created && young(desc) && looks < creatorLooks; looks++ {
		ddb.Sleep(ctx, creatorPause) // whoever creates it may be about to switch TTL on
		if err = ddb.CtxError(ctx); err == nil {
			attr, err = t.ttlAttribute(ctx)
		}
	}
	switch {
	case err != nil:
		return err
	case attr == t.core.Attr.TTL:
		return nil
	case attr != "":
		return fmt.Errorf("%w: the TTL of table %q is on attribute %q: set Attributes.TTL of the TableConfig to it", ErrSchema, t.Name(), attr)
	}
	if !created {
		t.core.Observe.Event(ctx, slog.LevelWarn, telemetry.EventNoTTL, "the table has no TTL: what the library marks for removal stays", slog.String("attribute", t.core.Attr.TTL))
		return nil
	}
	on := true
	_, err = ask(ctx, t, "UpdateTimeToLive", t.client.UpdateTimeToLive, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &t.core.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.core.Attr.TTL, Enabled: &on},
	})
	if err == nil {
		return nil
	}
	// Two processes may ensure one table at once: what counts is that it is on.
	if attr, derr := t.ttlAttribute(ctx); derr == nil && attr == t.core.Attr.TTL {
		return nil
	}
	return err
}

// For how long, and how often, a table that somebody has just created is looked at before
// it is said to have no TTL.
const (
	creatorTime  = time.Minute // of the table, and beyond what clocks differ by
	creatorPause = 250 * time.Millisecond
	creatorLooks = 4
)

// young reports whether a table was created so lately that its creator may be at it.
func young(desc *types.TableDescription) bool {
	return desc.CreationDateTime != nil && time.Since(*desc.CreationDateTime).Abs() < creatorTime
}

// ttlAttribute is the attribute on which the table's TTL is, "" if it is off.
func (t *KeyTable) ttlAttribute(ctx context.Context) (string, error) {
	out, err := ask(ctx, t, "DescribeTimeToLive", t.client.DescribeTimeToLive, &dynamodb.DescribeTimeToLiveInput{TableName: &t.core.Name})
	if err != nil {
		return "", err
	}
	if d := out.TimeToLiveDescription; d != nil && d.AttributeName != nil {
		return *d.AttributeName, nil
	}
	return "", nil
}
