package recent_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/recent"
)

func put(m *recent.Memory[int], key string, v int) {
	m.Change(key, func(int) (int, bool) { return v, true })
}

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	m := recent.New[int](2)
	put(m, "a", 1)
	put(m, "b", 2)
	if m.Get("a") != 1 { // used now
		t.Error("a is gone")
	}
	put(m, "c", 3)
	if m.Get("a") != 1 || m.Get("b") != 0 || m.Get("c") != 3 || m.Len() != 2 {
		t.Errorf("a %d, b %d, c %d, %d in all: want b gone", m.Get("a"), m.Get("b"), m.Get("c"), m.Len())
	}
	put(m, "a", 5) // a change of what is there drops nobody
	m.Change("c", func(v int) (int, bool) { return v, false })
	m.Change("x", func(v int) (int, bool) { return v, false })
	if m.Get("a") != 5 || m.Get("c") != 0 || m.Len() != 1 {
		t.Errorf("a %d, c %d, %d in all", m.Get("a"), m.Get("c"), m.Len())
	}
}

func TestNothingIsKeptWithoutSize(t *testing.T) {
	m := recent.New[int](0)
	put(m, "a", 1)
	if m.Get("a") != 0 || m.Len() != 0 {
		t.Error("it keeps something")
	}
}

func TestSideBySide(t *testing.T) {
	m := recent.New[int](8)
	var done sync.WaitGroup
	for i := range 16 {
		done.Go(func() {
			for n := range 500 {
				m.Change(strconv.Itoa(n%4), func(v int) (int, bool) { return v + 1, true })
				m.Get(strconv.Itoa(i))
			}
		})
	}
	done.Wait()
	if sum := m.Get("0") + m.Get("1") + m.Get("2") + m.Get("3"); sum != 16*500 {
		t.Errorf("%d changes are left of %d", sum, 16*500)
	}
}
