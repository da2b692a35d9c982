package main

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
)

// warehouse takes notices, which may come again.
type warehouse struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	came map[string]int // guarded by mu: how often, by the notice's id
}

func openWarehouse() (*warehouse, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &warehouse{url: "http://" + listener.Addr().String(), came: map[string]int{}}
	h.server = newServer(http.HandlerFunc(h.take))
	go func() { _ = h.server.Serve(listener) }()
	return h, nil
}

func (h *warehouse) take(w http.ResponseWriter, r *http.Request) {
	var n notice
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&n); err != nil {
		http.Error(w, "no notice", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.came[n.ID]++
	h.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (h *warehouse) close() { _ = h.server.Close() }
