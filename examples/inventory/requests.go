package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// counter counts the requests of a client, repetitions included: by table, and
// those of transactions, which are for several tables.
type counter struct {
	prefix string // of the tables' names
	counts [tables + 1]atomic.Int64
}

// count is an option for a client.
func (c *counter) count(o *dynamodb.Options) { o.HTTPClient = counting{o.HTTPClient, c} }

// take returns the counts and begins anew.
func (c *counter) take() (counts [tables + 1]int64) {
	for i := range c.counts {
		counts[i] = c.counts[i].Swap(0)
	}
	return counts
}

type counting struct {
	dynamodb.HTTPClient
	counter *counter
}

// Do implements dynamodb.HTTPClient.
func (c counting) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var request struct{ TableName string } // empty where each part of a request names its own
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	i := slices.Index(tableNames[:], strings.TrimPrefix(request.TableName, c.counter.prefix))
	if i < 0 {
		i = transactions
	}
	c.counter.counts[i].Add(1)
	return c.HTTPClient.Do(r)
}
