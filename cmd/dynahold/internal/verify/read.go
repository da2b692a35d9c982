package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/history"
)

// Read reads JSON documents, one behind the other: batches with "Records", as `aws
// dynamodbstreams get-records` prints them and as a Lambda handler gets them, single
// records, and lines of package history. name stands in errors.
func Read(in io.Reader, name string) (*Input, error) {
	all := &Input{}
	d := json.NewDecoder(in)
	for n := 1; ; n++ {
		var doc json.RawMessage
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s, document %d: %w", name, n, err)
		}
		if err := all.document(doc); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", name, n, err)
		}
	}
}

// Input is what was read.
type Input struct {
	Changes []Change
	Calls   []history.Call
	Dropped int // calls that are not there
}

// document reads one document.
func (all *Input) document(doc json.RawMessage) error {
	var d struct {
		Records  *[]json.RawMessage
		DynamoDB json.RawMessage `json:"dynamodb"`
		Call     string          `json:"call"`
		Dropped  int             `json:"dropped"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return err
	}
	records := []json.RawMessage{doc}
	switch {
	case d.Dropped > 0:
		all.Dropped += d.Dropped
		return nil
	case d.Call != "":
		var call history.Call
		err := json.Unmarshal(doc, &call)
		all.Calls = append(all.Calls, call)
		return err
	case d.Records != nil:
		records = *d.Records
	case d.DynamoDB == nil:
		return errors.New(`it is no batch ("Records"), no record ("dynamodb") and no call ("call")`)
	}
	for i, r := range records {
		c, err := record(r)
		if err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
		all.Changes = append(all.Changes, c)
	}
	return nil
}

// record reads a record, in either spelling.
func record(doc json.RawMessage) (c Change, err error) {
	var r struct {
		EventName    string `json:"eventName"`
		Source       string `json:"eventSourceARN"`
		UserIdentity *struct {
			PrincipalID string `json:"principalId"`
		} `json:"userIdentity"`
		DynamoDB struct {
			Time                     json.RawMessage `json:"ApproximateCreationDateTime"`
			Keys, OldImage, NewImage json.RawMessage
			SequenceNumber           string
			View                     string `json:"StreamViewType"`
		} `json:"dynamodb"`
	}
	if err := json.Unmarshal(doc, &r); err != nil {
		return c, err
	}
	d := &r.DynamoDB
	if d.View != "" && d.View != string(types.StreamViewTypeNewAndOldImages) {
		return c, fmt.Errorf("the stream has the view %s: what an item was and is must be seen (NEW_AND_OLD_IMAGES)", d.View)
	}
	var keys map[string]types.AttributeValue
	for _, part := range []struct {
		from json.RawMessage
		to   *map[string]types.AttributeValue
	}{{d.Keys, &keys}, {d.OldImage, &c.Before}, {d.NewImage, &c.After}} {
		if len(part.from) == 0 || bytes.Equal(part.from, []byte("null")) {
			continue
		}
		if *part.to, err = attributevalue.UnmarshalMapJSON(part.from); err != nil {
			return c, err
		}
	}
	switch {
	case len(keys) == 0:
		return c, errors.New("it has no Keys")
	case r.EventName == "MODIFY" && (len(c.Before) == 0 || len(c.After) == 0), r.EventName == "INSERT" && len(c.After) == 0, r.EventName == "REMOVE" && len(c.Before) == 0:
		return c, fmt.Errorf("%s without both images: the stream must have the view NEW_AND_OLD_IMAGES", r.EventName)
	}
	of := Of(keys)
	c.Key, c.Name, c.Keys = of.Key, of.Name, of.Keys
	c.Table, c.Sequence = tableOf(r.Source), d.SequenceNumber
	c.ByTTL = r.UserIdentity != nil && r.UserIdentity.PrincipalID == "dynamodb.amazonaws.com"
	c.Time, err = timeOf(d.Time)
	return c, err
}

// tableOf is the table in the ARN of a stream; "" if it is none.
func tableOf(arn string) string {
	_, rest, found := strings.Cut(arn, ":table/")
	name, _, _ := strings.Cut(rest, "/")
	if !found {
		return ""
	}
	return name
}

// timeOf reads a time as the command line prints it, or as Lambda gives it: Unix seconds.
func timeOf(v json.RawMessage) (t time.Time, err error) {
	if len(v) == 0 {
		return t, nil
	}
	if v[0] == '"' {
		return t, json.Unmarshal(v, &t)
	}
	seconds, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.Abs(seconds) > 1e12 {
		return t, fmt.Errorf("ApproximateCreationDateTime is no time: %s", v)
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC(), nil
}
