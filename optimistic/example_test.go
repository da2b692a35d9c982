package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// Page is the item of the examples.
type Page struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Text    string `dynamodbav:"text"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// pages is a repository with one page, on the tests' engine.
func pages(ctx context.Context, cfg optimistic.Config) *optimistic.Repository[Page] {
	table, err := repo.NewTable[Page](rig.Client(), "pages"+time.Now().Format("-150405.000000000"), repo.TableConfig{})
	if err != nil {
		panic(err)
	}
	if err := table.EnsureTable(ctx); err != nil {
		panic(err)
	}
	r, err := optimistic.New(table, cfg)
	if err != nil {
		panic(err)
	}
	if _, err := r.Create(ctx, Page{ID: "start", Text: "Hello"}); err != nil {
		panic(err)
	}
	return r
}

// A change that somebody else overtakes runs again, from the item as it is then.
func ExampleRepository_Update() {
	ctx := context.Background()
	pages := pages(ctx, optimistic.Config{})
	elsewhere, err := optimistic.New(pages.Table(), optimistic.Config{}) // as another process has it
	if err != nil {
		panic(err)
	}

	runs := 0
	page, err := pages.Update(ctx, repo.Key{Partition: "start"}, func(_ context.Context, p *Page) error {
		if runs++; runs == 1 { // meanwhile
			if _, err := elsewhere.Save(ctx, Page{ID: "start", Text: "Hello, world", Version: p.Version}); err != nil {
				return err
			}
		}
		p.Text += "!"
		return nil
	})
	fmt.Println(page.Text, "version", page.Version, "after", runs, "runs", err)
	// Output: Hello, world! version 3 after 2 runs <nil>
}

// Save is for what leaves the program between reading and writing, such as a form:
// the version travels with it.
func ExampleRepository_Save() {
	ctx := context.Background()
	pages := pages(ctx, optimistic.Config{})

	anna, _ := pages.Get(ctx, repo.Key{Partition: "start"})
	bert := anna // both edit the same version

	anna.Text = "Hello from Anna"
	anna, err := pages.Save(ctx, anna)
	fmt.Println(anna.Version, err)

	bert.Text = "Hello from Bert"
	_, err = pages.Save(ctx, bert)
	fmt.Println("conflict:", errors.Is(err, repo.ErrConflict))
	// Output:
	// 2 <nil>
	// conflict: true
}

// Where one process changes an item again and again, Warm spares the read.
func ExampleConfig() {
	ctx := context.Background()
	pages := pages(ctx, optimistic.Config{Warm: 100})

	for range 3 {
		page, err := pages.Update(ctx, repo.Key{Partition: "start"}, func(_ context.Context, p *Page) error {
			p.Text += "."
			return nil
		})
		fmt.Println(page.Text, err)
	}
	// Output:
	// Hello. <nil>
	// Hello.. <nil>
	// Hello... <nil>
}
