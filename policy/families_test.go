// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// TestFamiliesOfModels: a model that has another vocabulary than its name says must not count as if exactly.
func TestFamiliesOfModels(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}}}`)
	for model, want := range map[string]string{
		"gpt-5-mini": "o200k", "gpt-4": "cl100k",
		"mistral-small-latest": "mistral", "open-mistral-nemo": "mistral", "mistral-large-2512": "mistral", "codestral-2501": "mistral",
		"open-mixtral-8x7b": "other", "open-mistral-7b": "other", "mistral.mistral-large-2402-v1:0": "other", "mistralai/Mixtral-8x7B-Instruct-v0.1": "other",
		"Qwen/Qwen3-32B": "qwen", "qwen2.5-coder": "qwen", "qwen3.5-plus": "other",
		"deepseek-chat": "deepseek", "deepseek-ai/DeepSeek-R1": "deepseek", "deepseek-coder-33b": "other",
		"deepseek-r1-distill-qwen-32b": "other", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": "llama",
	} {
		if got, _ := p.Families.Lookup(model); got != want {
			t.Errorf("%s is %s, not %s", model, got, want)
		}
	}
}
