package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TestTheAnswerIsInTime: writes that are never answered leave a call the time to name
// the messages that are to come again, so that Lambda does not end the function.
func TestTheAnswerIsInTime(t *testing.T) {
	for _, mute := range []string{"GetItem", "UpdateItem"} {
		synctest.Test(t, func(t *testing.T) {
			f, err := newFunction(dynamodb.New(dynamodb.Options{
				Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: silent(mute),
			}), "accounts")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			batch := event(t, "02-one-account")
			began := time.Now()
			response, err := f.handle(ctx, batch)
			if err != nil || len(response.BatchItemFailures) != len(batch.Records) {
				t.Errorf("no answer to %s: %d of %d messages come again, %v", mute, len(response.BatchItemFailures), len(batch.Records), err)
			}
			if took := time.Since(began); took >= timeout {
				t.Errorf("no answer to %s: the call took %v of %v", mute, took, timeout)
			}
		})
	}
}

// silent never answers one operation, and finds no item for the others.
type silent string

// Do implements dynamodb.HTTPClient.
func (s silent) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+string(s)) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}}, nil
}
