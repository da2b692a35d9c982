package ddb

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// closes counts how often a body was closed.
type closes struct {
	io.Reader
	times int
}

func (c *closes) Close() error { c.times++; return nil }

// A body is read to its end and closed, as an HTTP client has to, also if its length is
// another than was said, of which package net/http has to hear. One without a length
// that is known beforehand stays as it is.
func TestWhichBodiesAreReadBeforehand(t *testing.T) {
	for length, read := range map[int64]bool{-1: false, 0: false, 2: true, 4: true, 6: true} {
		body := &closes{Reader: strings.NewReader("text")}
		req := &http.Request{Body: body, ContentLength: length}
		if err := inMemory(req, nil); err != nil || (body.times == 1) != read || (req.Body != io.ReadCloser(body)) != read || req.ContentLength != length {
			t.Errorf("length %d: %v, closed %d times, body %T, length %d", length, err, body.times, req.Body, req.ContentLength)
		}
		if all, err := io.ReadAll(req.Body); err != nil || string(all) != "text" {
			t.Errorf("length %d: %q, %v", length, all, err)
		}
	}
	if err := inMemory(&http.Request{ContentLength: 1}, nil); err != nil {
		t.Errorf("without a body: %v", err)
	}
}

// What a middleware has made of a body is sent, and not what was serialized.
func TestAChangedBodyIsSentAsItIs(t *testing.T) {
	for _, body := range []string{"text", "best", "other text"} {
		req := &http.Request{Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
		if err := inMemory(req, []byte("text")); err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(req.Body); err != nil || string(all) != body {
			t.Errorf("%q, %v, want %q", all, err, body)
		}
	}
}
