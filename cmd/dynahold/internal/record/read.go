package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line: an item of DynamoDB is smaller, in any encoding.
const maxLine = 4 << 20

// Read reads a record. name stands in errors. A line that was being written when the
// program was killed is left out: it is the last one, or the next watch begins after it.
func Read(in io.Reader, name string) ([]Event, error) {
	var all []Event
	var torn error // of the line before, unless a watch begins here
	lines := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		line, last, err := readLine(lines)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			e, err := parse(line)
			if torn != nil && (err != nil || e.Event != Watching) {
				return nil, torn
			}
			switch torn = nil; {
			case err == nil:
				all = append(all, e)
			case !last || n == 1:
				torn = fmt.Errorf("%s, line %d is no event of locks watch: %w", name, n, err)
				if line[0] != '{' {
					return nil, torn
				}
			}
		}
		if last {
			return all, torn
		}
	}
}

// readLine is the next line. The last one has no end, and may be empty.
func readLine(in *bufio.Reader) (line []byte, last bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, false, nil
		case errors.Is(err, io.EOF):
			return line, true, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, false, err
		case len(line) > maxLine:
			return line, false, fmt.Errorf("more than %d bytes", maxLine)
		}
	}
}

// parse refuses other JSON documents, such as those of list.
func parse(line []byte) (e Event, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	return e, e.complete()
}

func (e Event) complete() error {
	switch {
	case e.Event == "":
		return errors.New("it has no \"event\"")
	case e.Time.IsZero():
		return errors.New("it has no \"time\"")
	case e.Table == "":
		return errors.New("it has no \"table\"")
	}
	switch e.Event {
	case Held, Taken, Expired, Extended, Ended:
		if e.Lock == nil {
			return fmt.Errorf("%q has no \"lock\"", e.Event)
		}
	case Watching, Looked, Stopped:
	default: // of a newer version
	}
	return nil
}
