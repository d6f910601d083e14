# SPDX-License-Identifier: Apache-2.0
# Changed flags rebuild. COMMAND_KIND is the command that makes things of a kind, for each of KINDS, and the file
# $(BUILD)/commands/KIND holds it. The file is written only when the command has changed; what the command makes depends on it.
# Include this file after all COMMAND_KIND.
$(foreach k,$(KINDS),$(eval WORDS_$k := $$(strip $$(COMMAND_$k))))
$(foreach k,$(KINDS),$(if $(subst x$(WORDS_$k)x,,x$(strip $(file <$(BUILD)/commands/$k))x),$(eval $(BUILD)/commands/$k: changed)))
$(KINDS:%=$(BUILD)/commands/%):
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(WORDS_$(@F)))' >$@
.PHONY: changed
