// SPDX-License-Identifier: Apache-2.0

package policy

// A LogLevel is how loud something is logged.
type LogLevel uint8

// Log levels.
const (
	LogOff LogLevel = iota
	LogDebug
	LogInfo
	LogWarn
	numLogLevels
)

var logLevels = [numLogLevels]string{"off", "debug", "info", "warn"}

func (l LogLevel) String() string { return nameOf(logLevels[:], l) }

// A Log is what is written of each decision.
type Log struct {
	Admit, Deny LogLevel
	Access      bool // Envoy's access log is told the figures
	Caller      bool // with the names of who asks
}

// Any says whether anything is written.
func (l *Log) Any() bool { return l.Admit != LogOff || l.Deny != LogOff || l.Access }

// log compiles what is logged. Nothing, if the policy does not say: a storm of refusals must not become one of lines.
func (c *compiler) log() (l Log) {
	s := c.spec.Log
	l.Admit, l.Deny, l.Access, l.Caller = c.logLevel("log.admit", s.Admit), c.logLevel("log.deny", s.Deny), s.Access, s.Caller
	return l
}

func (c *compiler) logLevel(path, word string) LogLevel {
	word = c.oneOf(path, word, logLevels[LogOff], logLevels[:]...)
	for l, name := range logLevels {
		if name == word {
			return LogLevel(l)
		}
	}
	return LogOff
}
