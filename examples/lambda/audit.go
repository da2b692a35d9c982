package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// audited is an account as it is stored, read without the library.
type audited struct {
	ID       string `dynamodbav:"id"`
	Cents    int64  `dynamodbav:"cents"`
	Version  int64  `dynamodbav:"version"` // counts the transfers that were booked
	LockedBy string `dynamodbav:"lockedBy"`
}

// audit recomputes the accounts from the events: every transfer once, but for those
// that ended as dead letters, and these only if they had to.
func audit(ctx context.Context, client *dynamodb.Client, table string, files []delivery, dead map[string]events.SQSMessage) (faults []string, err error) {
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	want := map[string]audited{}
	booked := map[string]bool{}
	unbooked := map[string]transfer{} // dead letters that could be read
	for _, f := range files {
		for _, m := range f.records {
			var t transfer
			_, died := dead[m.MessageId]
			readable := json.Unmarshal([]byte(m.Body), &t) == nil && t.ID != ""
			switch {
			case !readable && !died:
				wrong("message %s cannot be read, and is not with the dead letters", m.MessageId)
			case readable && died:
				unbooked[m.MessageId] = t
			case readable && !booked[t.ID]:
				booked[t.ID] = true
				a := want[t.Account]
				want[t.Account] = audited{ID: t.Account, Cents: a.Cents + t.Cents, Version: a.Version + 1}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unbooked)) {
		if t := unbooked[id]; want[t.Account].Cents+t.Cents >= 0 {
			wrong("message %s is with the dead letters, and its account could bear it", id)
		}
	}
	page, err := client.Scan(ctx, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	var accounts []audited
	if err := attributevalue.UnmarshalListOfMaps(page.Items, &accounts); err != nil {
		return nil, err
	}
	for _, got := range accounts {
		if w := want[got.ID]; got != w {
			wrong("account %s is %+v, want %+v", got.ID, got, w)
		}
		delete(want, got.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		wrong("account %s is missing", id)
	}
	return faults, nil
}
