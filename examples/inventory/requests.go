package main

import (
	"net/http"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// counter counts the requests of a client, repetitions included.
type counter struct{ atomic.Int64 }

// count is an option for a client.
func (c *counter) count(o *dynamodb.Options) { o.HTTPClient = counting{o.HTTPClient, c} }

type counting struct {
	dynamodb.HTTPClient
	counter *counter
}

// Do implements dynamodb.HTTPClient.
func (c counting) Do(r *http.Request) (*http.Response, error) {
	c.counter.Add(1)
	return c.HTTPClient.Do(r)
}
