// catalogue_json: the text of quire/hub/catalogue.json, which is the list of known models.
#pragma once

#include <string_view>

namespace quire::hub {

std::string_view catalogue_json();

}  // namespace quire::hub
