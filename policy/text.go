// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy/brief"
)

// The types below are values as policies write them. Each reads and writes its text form, in YAML and in JSON alike.

// A Duration is written 500ms, 15s, 30m, 1h, 7d or a sum of these, such as 1h30m.
type Duration time.Duration

// UnmarshalText reads a duration of zero or more.
func (d *Duration) UnmarshalText(b []byte) error {
	head, s, hasDays := strings.Cut(string(b), "d")
	var days int64
	var err error
	if !hasDays {
		head, s = "", head
	} else if days, err = parseCount(head); err == nil && s == "" {
		s = "0s"
	}
	rest, err2 := time.ParseDuration(s)
	if err != nil || err2 != nil || strings.HasPrefix(s, "+") {
		return brief.Errorf("%q is no duration: write 500ms, 15s, 30m, 1h or 7d", b)
	}
	if rest < 0 || days > 3650 || rest > 3650*24*time.Hour {
		return brief.Errorf("%q: a duration lies between 0 and 3650d", b)
	}
	*d = Duration(time.Duration(days)*24*time.Hour + rest)
	return nil
}

// MarshalText writes the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// A Size is a number of bytes, written 65536, 64KiB, 1MiB or 1GiB.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

// UnmarshalText reads a size of zero or more.
func (z *Size) UnmarshalText(b []byte) error {
	for _, u := range sizeUnits {
		if head, ok := strings.CutSuffix(string(b), u.suffix); ok {
			n, err := parseCount(strings.TrimSpace(head))
			if err != nil || n > (1<<40)/u.bytes {
				break
			}
			*z = Size(n * u.bytes)
			return nil
		}
	}
	return brief.Errorf("%q is no size: write 65536, 64KiB or 1MiB", b)
}

// MarshalText writes the size in bytes.
func (z Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(z), 10), nil }

// UnmarshalText reads a share between 0 and 100 %, written 20% or 12.5%.
func (s *Share) UnmarshalText(b []byte) error {
	head, ok := strings.CutSuffix(string(b), "%")
	f, err := strconv.ParseFloat(head, 64)
	if !ok || err != nil || f > 100 || strings.Trim(head, "0123456789.") != "" {
		return brief.Errorf("%q is no share: write 20%%, at most 100%%", b)
	}
	*s = Share(f*float64(Whole)/100 + 0.5)
	return nil
}

// MarshalText writes the share in percent.
func (s Share) MarshalText() ([]byte, error) {
	return append(strconv.AppendFloat(nil, float64(s)*100/float64(Whole), 'f', -1, 64), '%'), nil
}

// A Count is a number of requests or tokens; digits may be grouped: 30_000.
type Count int64

// UnmarshalText reads a count of zero or more.
func (c *Count) UnmarshalText(b []byte) error {
	n, err := parseCount(string(b))
	if err != nil {
		return err
	}
	*c = Count(n)
	return nil
}

// MarshalText writes the count.
func (c Count) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(c), 10), nil }

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil || n < 0 || strings.Trim(s, "0123456789_") != "" || strings.Contains("_"+s+"_", "__") {
		return 0, brief.Errorf("%q is no count: write a whole number such as 30_000", s)
	}
	return n, nil
}

// A Window says in what sense or over what length a limit holds: sliding, continuous, fixed, or a duration, which is a
// sliding window of that length.
type Window struct {
	Kind   WindowKind
	Length Duration
}

// UnmarshalText reads a window.
func (w *Window) UnmarshalText(b []byte) error {
	for i, n := range windowKindNames {
		if n == string(b) && WindowKind(i) != Stock {
			*w = Window{Kind: WindowKind(i)}
			return nil
		}
	}
	var d Duration
	if err := d.UnmarshalText(b); err != nil || d < Duration(time.Millisecond) || time.Duration(d) > MaxWindow {
		return brief.Errorf("%q is no window: write sliding, continuous, fixed, subwindows, or a length of 1ms to 31d", b)
	}
	*w = Window{Length: d}
	return nil
}

// MarshalText writes the window.
func (w Window) MarshalText() ([]byte, error) {
	if w.Length > 0 {
		return w.Length.MarshalText()
	}
	return []byte(w.Kind.String()), nil
}

// A Burst is what may be taken at once: a count, or a share of the limit.
type Burst struct {
	Count Count
	Share Share
}

// UnmarshalText reads a burst.
func (u *Burst) UnmarshalText(b []byte) error {
	*u = Burst{}
	if strings.HasSuffix(string(b), "%") {
		return u.Share.UnmarshalText(b)
	}
	if err := u.Count.UnmarshalText(b); err != nil {
		return brief.Errorf("%q is no burst: write a number such as 5_000, or a share such as 25%%", b)
	}
	return nil
}

// MarshalText writes the burst.
func (u Burst) MarshalText() ([]byte, error) {
	if u.Share > 0 {
		return u.Share.MarshalText()
	}
	return u.Count.MarshalText()
}

// A Growth is a share per time, written 5%/30s.
type Growth struct {
	Share Share
	Per   Duration
}

// UnmarshalText reads a growth.
func (g *Growth) UnmarshalText(b []byte) error {
	share, per, ok := strings.Cut(string(b), "/")
	if !ok || g.Share.UnmarshalText([]byte(share)) != nil || g.Per.UnmarshalText([]byte(per)) != nil || g.Per == 0 {
		return brief.Errorf("%q is no growth: write 5%%/30s", b)
	}
	return nil
}

// MarshalText writes the growth.
func (g Growth) MarshalText() ([]byte, error) {
	share, _ := g.Share.MarshalText()
	per, _ := g.Per.MarshalText()
	return append(append(share, '/'), per...), nil
}

// UnmarshalText reads a mode.
func (m *Mode) UnmarshalText(b []byte) error {
	for i, n := range modeNames {
		if n == string(b) {
			*m = Mode(i)
			return nil
		}
	}
	return brief.Errorf("%q is no mode: write enforce, shadow or off", b)
}

// MarshalText writes the mode.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
