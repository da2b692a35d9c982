package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// stream is the stream of a table: its changes of the last 24 hours, oldest first for
// each item.
type stream struct {
	client *dynamodbstreams.Client
	arn    string
}

// stream is the table's newest stream. One that was switched off can be read for a day.
func (t *opened) stream() (*stream, error) {
	arn := aws.ToString(t.desc.LatestStreamArn)
	if arn == "" {
		return nil, outcome{exitNothing, fmt.Errorf("table %q has no stream, and without one an item has no history. A stream keeps the changes of 24 hours, beginning when it is switched on: "+
			"aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES", t.name, t.name)}
	}
	o := t.client.Options()
	return &stream{arn: arn, client: dynamodbstreams.New(dynamodbstreams.Options{
		Region: o.Region, Credentials: o.Credentials, BaseEndpoint: o.BaseEndpoint, HTTPClient: o.HTTPClient,
	})}, nil
}

// An empty answer need not be a shard's end. One that is still open never says that it
// has ended: it is taken for it after as many in a row, a pause apart, for a shard answers
// five times a second. One that is closed says so, with its last record or after it, and
// the bound is for emulators that do not.
const (
	emptyAnswers       = 4
	emptyAnswersBefore = 40 // the last record of a closed shard
	streamPause        = 250 * time.Millisecond
)

// read hands on all records that the stream keeps, of a shard's parent before those of
// the shard.
func (s *stream) read(ctx context.Context, each func(streamtypes.Record) error) error {
	shards, err := s.shards(ctx)
	if err != nil {
		return err
	}
	byID := map[string]streamtypes.Shard{}
	for _, shard := range shards {
		byID[*shard.ShardId] = shard
	}
	var visit func(id string) error
	visit = func(id string) error {
		shard, there := byID[id]
		if !there {
			return nil // read already, or too old to be kept
		}
		delete(byID, id)
		if err := visit(aws.ToString(shard.ParentShardId)); err != nil {
			return err
		}
		return s.readShard(ctx, shard, each)
	}
	for _, shard := range shards {
		if err := visit(*shard.ShardId); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) shards(ctx context.Context) (shards []streamtypes.Shard, err error) {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &s.arn}
	for {
		out, err := s.client.DescribeStream(ctx, in)
		if err != nil {
			return nil, err
		}
		d := out.StreamDescription
		if d.StreamViewType != streamtypes.StreamViewTypeNewAndOldImages {
			return nil, outcome{exitNothing, fmt.Errorf("the table's stream has the view %s: a history needs the images before and after each change (NEW_AND_OLD_IMAGES)", d.StreamViewType)}
		}
		shards = append(shards, d.Shards...)
		if in.ExclusiveStartShardId = d.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return shards, nil
		}
	}
}

func (s *stream) readShard(ctx context.Context, shard streamtypes.Shard, each func(streamtypes.Record) error) error {
	start, err := s.client.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &s.arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
	if trimmed := new(streamtypes.ResourceNotFoundException); errors.As(err, &trimmed) {
		return nil // the day of its last record has passed meanwhile
	}
	if err != nil {
		return err
	}
	most, end := emptyAnswers, ""
	if r := shard.SequenceNumberRange; r != nil && r.EndingSequenceNumber != nil {
		most, end = emptyAnswersBefore, *r.EndingSequenceNumber
	}
	for next, empty := start.ShardIterator, 0; next != nil; {
		out, err := s.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
		if err != nil {
			return err
		}
		for _, r := range out.Records {
			if err := each(r); err != nil {
				return err
			}
			if aws.ToString(r.Dynamodb.SequenceNumber) == end {
				most = emptyAnswers
			}
		}
		next = out.NextShardIterator
		if len(out.Records) > 0 {
			empty = 0
			continue
		}
		if empty++; next == nil || empty >= most {
			return nil
		}
		select {
		case <-time.After(streamPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// byTTL reports whether it was DynamoDB's own removal of an expired item.
func byTTL(r streamtypes.Record) bool {
	return r.UserIdentity != nil && aws.ToString(r.UserIdentity.PrincipalId) == "dynamodb.amazonaws.com"
}
