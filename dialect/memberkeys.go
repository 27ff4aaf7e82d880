// SPDX-License-Identifier: Apache-2.0

package dialect

// A member is a top-level member of a request that says something about its cost.
type member uint8

const (
	kMaxTokens member = iota // numbers
	kMaxCompletionTokens
	kMaxOutputTokens
	kMaxTokensToSample
	kMaxGenLen
	kMinTokens
	kN
	kBestOf
	kMessages // anything else
	kTools
	kFunctions
	kResponseFormat
	kPrediction
	kInput
	kInstructions
	kText
	kPrompt
	kSuffix
	kSystem
	kContents // Gemini from here
	kContent  // of what is to be embedded
	kSystemInstruction
	kGenerationConfig
	kCachedContent
	kRequests
	kInferenceConfig // Bedrock from here
	kToolConfig
	kPromptVariables
	kInputText
	kTextGenerationConfig
	kMessage // Cohere from here
	kChatHistory
	kPreamble
	kDocuments
	kTexts
	kInputs
	kImages
	kQuery
	kOptions      // Ollama
	kChatTemplate // vLLM
	kTemplateWords
	kModel
	kStream
	kStreamOptions
	kEarlier
	kConversation
	numMembers

	numNumbers = kMessages
)

// memberOf finds a member by its key; numMembers if it says nothing about the cost. (A switch: a map would hash each key.)
func memberOf(key string) member {
	switch key {
	case "messages":
		return kMessages
	case "tools":
		return kTools
	case "functions":
		return kFunctions
	case "response_format":
		return kResponseFormat
	case "prediction":
		return kPrediction
	case "input":
		return kInput
	case "instructions":
		return kInstructions
	case "text":
		return kText
	case "prompt":
		return kPrompt
	case "suffix":
		return kSuffix
	case "system":
		return kSystem
	case "max_tokens":
		return kMaxTokens
	case "max_completion_tokens":
		return kMaxCompletionTokens
	case "max_output_tokens":
		return kMaxOutputTokens
	case "n":
		return kN
	case "best_of":
		return kBestOf
	case "model":
		return kModel
	case "stream":
		return kStream
	case "stream_options":
		return kStreamOptions
	case "contents":
		return kContents
	case "content":
		return kContent
	case "systemInstruction", "system_instruction":
		return kSystemInstruction
	case "generationConfig", "generation_config":
		return kGenerationConfig
	case "cachedContent", "cached_content":
		return kCachedContent
	case "requests":
		return kRequests
	case "inferenceConfig":
		return kInferenceConfig
	case "toolConfig":
		return kToolConfig
	case "promptVariables":
		return kPromptVariables
	case "inputText":
		return kInputText
	case "textGenerationConfig":
		return kTextGenerationConfig
	case "message":
		return kMessage
	case "chat_history":
		return kChatHistory
	case "preamble":
		return kPreamble
	case "documents":
		return kDocuments
	case "texts":
		return kTexts
	case "inputs":
		return kInputs
	case "images":
		return kImages
	case "query":
		return kQuery
	case "options":
		return kOptions
	case "chat_template":
		return kChatTemplate
	case "chat_template_kwargs":
		return kTemplateWords
	case "max_tokens_to_sample":
		return kMaxTokensToSample
	case "max_gen_len":
		return kMaxGenLen
	case "min_tokens":
		return kMinTokens
	case "previous_response_id":
		return kEarlier
	case "conversation":
		return kConversation
	}
	return numMembers
}
