// TiledLayout, which may hold another one inside.

#include <span>

#include "layouts.hpp"

namespace hurray::python {
namespace {

constexpr std::span<const LayoutInfo> inner_orders = std::span(layouts).first<4>();
constexpr std::span<const LayoutInfo> outer_orders = inner_orders.first<3>();
static_assert(inner_orders.back().tag == LayoutTag::tiled);

/// Nested levels beyond this one are not printed.
constexpr std::size_t printed_levels = 4;

Strides strides_argument(nb::handle value, const char* name, bool wanted, std::size_t rank) {
  const std::string argument(name);
  const std::string order = argument.substr(0, argument.find('_')) + "_layout";
  if (value.is_none()) {
    if (wanted) fail(Exc::invalid_descriptor, order + " 'strided' needs " + argument);
    return {};
  }
  if (!wanted) fail(Exc::invalid_descriptor, argument + " goes with " + order + " 'strided' only");
  auto strides = list_argument<Strides>(value, name);
  if (strides.size() != rank)
    fail(Exc::invalid_descriptor, argument + " has " + std::to_string(strides.size()) +
                                      " entries for a tile of rank " + std::to_string(rank));
  return strides;
}

void construct(LayoutOf<Tiled>* self, nb::handle tile_shape, nb::handle outer_layout,
               nb::handle inner_layout, nb::handle outer_strides, nb::handle inner_strides,
               nb::handle inner_tiled) {
  const TileOrders orders{.outer = name_argument(outer_layout, outer_orders, "outer_layout"),
                          .inner = name_argument(inner_layout, inner_orders, "inner_layout")};
  const auto tile = list_argument<SmallVector<std::uint64_t, 8>>(tile_shape, "tile_shape");
  const std::size_t rank = tile.size();
  const Strides outer =
      strides_argument(outer_strides, "outer_strides", orders.outer == LayoutTag::strided, rank);
  const Strides inner =
      strides_argument(inner_strides, "inner_strides", orders.inner == LayoutTag::strided, rank);
  Tiled layout(tile, orders, outer, inner);
  const bool nested = orders.inner == LayoutTag::tiled;
  if (inner_tiled.is_none()) {
    if (nested) fail(Exc::invalid_descriptor, "inner_layout 'tiled' needs inner_tiled");
  } else {
    const auto* level = value_of<LayoutOf<Tiled>>(inner_tiled);
    if (level == nullptr)
      fail(PyExc_TypeError,
           "inner_tiled must be a hurray.TiledLayout, got " + python::type_name(inner_tiled));
    if (!nested) fail(Exc::invalid_descriptor, "inner_tiled goes with inner_layout 'tiled' only");
    if (level->get().rank() != rank)
      fail(Exc::invalid_descriptor, "inner_tiled has tiles of rank " +
                                        std::to_string(level->get().rank()) +
                                        " inside a tile of rank " + std::to_string(rank));
    layout.inside(level->get());
  }
  check_fields(layout, rank);
  new (self) LayoutOf<Tiled>(std::move(layout));
}

TileLevel outermost(const Tiled& layout) { return layout.level(0, layout.rank()); }

/// The levels inside the outermost one; none when it is the last.
std::optional<Tiled> inner_levels(const Tiled& layout) {
  std::optional<Tiled> inner;
  for (std::size_t i = 1; i < layout.levels(); ++i) {
    const TileLevel level = layout.level(i, layout.rank());
    Tiled one(level.tile_shape, level.orders, level.outer_strides, level.inner_strides);
    if (inner)
      inner->inside(one);
    else
      inner = std::move(one);
  }
  return inner;
}

nb::object strides_or_none(LayoutTag order, std::span<const std::int64_t> strides) {
  return order == LayoutTag::strided ? nb::object(tuple_of(strides)) : nb::none();
}

Call call_of(const Tiled& layout, std::size_t level) {
  const TileLevel here = outermost(layout);
  Call call{"TiledLayout",
            {{"tile_shape", tuple_of(here.tile_shape)},
             {"outer_layout", text_of(name(here.orders.outer))},
             {"inner_layout", text_of(name(here.orders.inner))}}};
  if (here.orders.outer == LayoutTag::strided)
    call.arguments.push_back({"outer_strides", tuple_of(here.outer_strides)});
  if (here.orders.inner == LayoutTag::strided)
    call.arguments.push_back({"inner_strides", tuple_of(here.inner_strides)});
  if (auto inner = inner_levels(layout)) {
    std::string text = level == printed_levels ? "..." : to_text(call_of(*inner, level + 1));
    call.arguments.push_back(
        {"inner_tiled", nb::cast(LayoutOf<Tiled>(*std::move(inner))), std::move(text)});
  }
  return call;
}

}  // namespace

Call call_of(const Tiled& layout) { return call_of(layout, 1); }

void bind_tiled_layout(nb::module_& m) {
  using namespace nb::literals;
  using Self = LayoutOf<Tiled>;
  nb::class_<Self, PyLayout>(
      m, "TiledLayout", nb::is_final(),
      "The index space cut into boxes of `tile_shape`: `outer_layout` orders the tiles, "
      "`inner_layout`\n"
      "the elements of one tile, which may be tiled again (`inner_tiled`), up to 8 levels. "
      "`outer_strides`\n"
      "count tiles, `inner_strides` logical elements. Raises `ValueError` for an unknown order "
      "and\n"
      "`InvalidDescriptorError` for sizes of 0 and for arguments that do not go together.")
      .def("__init__", &construct, "tile_shape"_a, "outer_layout"_a = "row_major",
           "inner_layout"_a = "row_major", "outer_strides"_a = nb::none(),
           "inner_strides"_a = nb::none(), "inner_tiled"_a = nb::none(),
           nb::sig(
               "def __init__(self, tile_shape: collections.abc.Sequence[int], outer_layout: "
               "typing.Literal['row_major', 'col_major', 'strided'] = 'row_major', inner_layout: "
               "typing.Literal['row_major', 'col_major', 'strided', 'tiled'] = 'row_major', "
               "outer_strides: collections.abc.Sequence[int] | None = None, inner_strides: "
               "collections.abc.Sequence[int] | None = None, inner_tiled: TiledLayout | None = "
               "None) -> None"))
      .def_prop_ro(
          "tile_shape", [](const Self& self) { return tuple_of(outermost(self.get()).tile_shape); },
          nb::sig("def tile_shape(self) -> tuple[int, ...]"), "Sizes of a tile, in elements.")
      .def_prop_ro(
          "outer_layout",
          [](const Self& self) { return text_of(name(outermost(self.get()).orders.outer)); },
          nb::sig("def outer_layout(self) -> typing.Literal['row_major', 'col_major', 'strided']"),
          "The order of the tiles.")
      .def_prop_ro(
          "inner_layout",
          [](const Self& self) { return text_of(name(outermost(self.get()).orders.inner)); },
          nb::sig("def inner_layout(self) -> typing.Literal['row_major', 'col_major', 'strided', "
                  "'tiled']"),
          "The order of the elements of one tile.")
      .def_prop_ro(
          "outer_strides",
          [](const Self& self) {
            const TileLevel level = outermost(self.get());
            return strides_or_none(level.orders.outer, level.outer_strides);
          },
          nb::sig("def outer_strides(self) -> tuple[int, ...] | None"),
          "Tiles from one to the next, per dimension; `None` unless `outer_layout` is strided.")
      .def_prop_ro(
          "inner_strides",
          [](const Self& self) {
            const TileLevel level = outermost(self.get());
            return strides_or_none(level.orders.inner, level.inner_strides);
          },
          nb::sig("def inner_strides(self) -> tuple[int, ...] | None"),
          "Elements from one to the next, per dimension; `None` unless `inner_layout` is strided.")
      .def_prop_ro(
          "inner_tiled",
          [](const Self& self) -> nb::object {
            auto inner = inner_levels(self.get());
            return inner ? nb::cast(Self(*std::move(inner))) : nb::none();
          },
          nb::sig("def inner_tiled(self) -> TiledLayout | None"),
          "How a tile is tiled again; `None` unless `inner_layout` is tiled.");
}

}  // namespace hurray::python
