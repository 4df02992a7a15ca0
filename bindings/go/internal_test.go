package holdfast

import "testing"

func TestVersionsAreComparedByNumber(t *testing.T) {
	for _, c := range []struct {
		version string
		older   bool
	}{{"0.1.0", false}, {"0.1", false}, {"0.0.9", true}, {"0.10.0", false}, {"1.0", false}, {"", true}, {"0", true}} {
		if isOlder(c.version, "0.1.0") != c.older {
			t.Errorf("%q", c.version)
		}
	}
	if isOlder(Version(), needed) {
		t.Error(Version())
	}
}

func TestTheLastOfThoseUnheardIsTold(t *testing.T) {
	lock := &Lock{asked: make(chan string, 1)}
	lock.ask("first")
	lock.ask("second")
	if who := <-lock.Asked(); who != "second" || len(lock.Asked()) > 0 {
		t.Error(who)
	}
}

// Kept is how many values C has the numbers of.
func Kept() (count int) {
	values.Range(func(_, _ any) bool {
		count++
		return true
	})
	return count
}
