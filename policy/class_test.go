// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

// The class of a request is its route's, else the one that it names, else that of who names none; who is not trusted may only
// name a lower one.
func TestClassOf(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},
		"classes":{"interactive":{"share":"60%"},"batch":{"share":"25%","on_limit":"queue","wait":"10s"},"probe":{"share":"15%"},"urgent":{"priority":99}},
		"routes":[{"match":{"path":"/openai/v1/embeddings"},"class":"batch"},{"match":{"path":"/openai/v1/chat*"},"on_limit":"queue"}]}`)
	var names []string
	for _, c := range p.Classes {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "urgent interactive batch probe" {
		t.Errorf("the order is %s", got)
	}
	for _, row := range []struct {
		path, named string
		trusted     bool
		want        string
		onLimit     OnLimit
	}{
		{"/openai/v1/responses", "", false, "interactive", OnLimitDeny}, {"/openai/v1/responses", "batch", false, "batch", OnLimitQueue},
		{"/openai/v1/responses", "urgent", false, "interactive", OnLimitDeny}, {"/openai/v1/responses", "urgent", true, "urgent", OnLimitDeny},
		{"/openai/v1/responses", "unheard-of", true, "interactive", OnLimitDeny}, {"/openai/v1/embeddings", "urgent", true, "batch", OnLimitQueue},
		{"/openai/v1/chat/completions", "probe", true, "probe", OnLimitQueue},
	} {
		_, c := p.ClassOf(row.path, row.named, "interactive", row.trusted)
		if c.Name != row.want || c.OnLimit != row.onLimit {
			t.Errorf("%+v: class %s, %v", row, c.Name, c.OnLimit)
		}
	}
	if !p.Classes[0].Queues || !p.Classes[1].Queues {
		t.Error("a route may make any class wait")
	}
	none := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}}}`)
	if i, c := none.ClassOf("/x", "batch", "interactive", true); i != 0 || c.OnLimit != OnLimitDeny {
		t.Errorf("without classes: %d %+v", i, c)
	}
}
