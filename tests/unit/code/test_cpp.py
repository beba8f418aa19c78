"""C++: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    #include <vector>
    #include "shapes/base.h"

    using namespace std::chrono;
    using std::vector;
    using Points = std::vector<Point>;
    namespace fs = std::filesystem;

    namespace acme::shapes {

    /// A circle.
    /// It is round.
    class Circle final : public Shape, private detail::Counted<Circle> {
     public:
        explicit Circle(double radius);
        ~Circle() override;
        static Circle unit();
        double area() const override;
        bool operator==(const Circle& other) const { return radius_ == other.radius_; }

     private:
        double radius_ = 1.0;
        std::unique_ptr<Painter> painter_;
    };

    template <typename T>
    T clamp(T value, T low) {
        return max(value, low);
    }

    Circle::Circle(double radius) : Shape(radius), radius_(radius) {}

    double Circle::area() const {
        Painter local(radius_);
        auto made = make_painter(*this);
        auto* owned = new Painter(radius_);
        painter_->paint(local, this->radius_);
        for (const Point& point : points()) {
            point.move();
        }
        std::sort(all.begin(), all.end(), by_area);
        return detail::scale<double>(owned->size()) + Circle::unit().area();
    }

    enum class Color { Red, Green };

    }  // namespace acme::shapes

    extern "C" {
    int shapes_open(const char* path) { return acme::shapes::open(path); }
    }
"""


def test_symbols() -> None:
    facts = said("cpp", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "6-6 type Points | type: std.vector",
        "9-47 module acme",
        "9-47 module acme.shapes",
        "13-24 class acme.shapes.Circle | bases: Shape, detail.Counted | doc: A circle.",
        "15-15 method acme.shapes.Circle.Circle",
        "16-16 method acme.shapes.Circle.~Circle",
        "17-17 method acme.shapes.Circle.unit | type: Circle | static",
        "18-18 method acme.shapes.Circle.area | type: double",
        "19-19 method acme.shapes.Circle.operator== | type: bool",
        "22-22 field acme.shapes.Circle.radius_ | type: double",
        "23-23 field acme.shapes.Circle.painter_ | type: Painter",
        "27-29 function acme.shapes.clamp | type: T",
        "31-31 method acme.shapes.Circle | receiver: Circle",
        "33-43 method acme.shapes.area | type: double | receiver: Circle",
        "45-45 enum acme.shapes.Color",
        "45-45 field acme.shapes.Color.Red",
        "45-45 field acme.shapes.Color.Green",
        "50-50 function shapes_open | type: int",
    ]
    assert facts.signatures == [
        "using Points = std::vector<Point>",
        "namespace acme::shapes",
        "shapes",
        "class Circle final : public Shape, private detail::Counted<Circle>",
        "explicit Circle(double radius)",
        "~Circle() override",
        "static Circle unit()",
        "double area() const override",
        "bool operator==(const Circle& other) const",
        "double radius_ = 1.0",
        "std::unique_ptr<Painter> painter_",
        "T clamp(T value, T low)",
        "Circle::Circle(double radius) : Shape(radius), radius_(radius)",
        "double Circle::area() const",
        "enum class Color",
        "Red",
        "Green",
        "int shapes_open(const char* path)",
    ]


def test_imports() -> None:
    assert said("cpp", SOURCE).imports == [
        "1 .: _ <- vector * exported",
        "2 .: _ <- shapes/base.h * exported",
        "4 .: _ <- std::chrono * exported",
        "5 .: vector <- std : vector exported",
        "7 .: fs <- std::filesystem exported",
    ]


def test_bindings() -> None:
    assert said("cpp", SOURCE).bindings == [
        "acme.shapes.Circle: painter_ : Painter",
        "acme.shapes.Circle: radius_ : double",
        "acme.shapes.Circle.Circle: radius : double",
        "acme.shapes.Circle.operator==: other : Circle",
        "acme.shapes.clamp: low : T",
        "acme.shapes.clamp: value : T",
        "acme.shapes.Circle: radius : double",
        "acme.shapes.area: local : Painter",
        "acme.shapes.area: made = make_painter()",
        "acme.shapes.area: owned = Painter()",
        "acme.shapes.area: point : Point",
        "shapes_open: path : char",
    ]


def test_mentions() -> None:
    assert said("cpp", SOURCE).mentions == [
        "6 Points names std.vector",
        "13 acme.shapes.Circle inherits Shape",
        "13 acme.shapes.Circle inherits detail.Counted",
        "17 acme.shapes.Circle.unit names Circle",
        "19 acme.shapes.Circle.operator== names Circle",
        "23 acme.shapes.Circle.painter_ names std.unique_ptr",
        "27 acme.shapes.clamp names T",
        "27 acme.shapes.clamp names T",
        "27 acme.shapes.clamp names T",
        "28 acme.shapes.clamp calls max",
        "31 acme.shapes.Circle names Shape",
        "31 acme.shapes.Circle names radius_",
        "34 acme.shapes.area calls Painter",
        "34 acme.shapes.area names radius_",
        "35 acme.shapes.area calls make_painter",
        "36 acme.shapes.area calls Painter",
        "36 acme.shapes.area names radius_",
        "37 acme.shapes.area calls painter_.paint",
        "37 acme.shapes.area names this.radius_",
        "38 acme.shapes.area names Point",
        "38 acme.shapes.area calls points",
        "39 acme.shapes.area calls point.move",
        "41 acme.shapes.area calls std.sort",
        "41 acme.shapes.area calls all.begin",
        "41 acme.shapes.area calls all.end",
        "41 acme.shapes.area names by_area",
        "42 acme.shapes.area calls detail.scale",
        "42 acme.shapes.area calls owned.size",
        "42 acme.shapes.area calls Circle.unit",
        "42 acme.shapes.area calls Circle.unit().area",
        "50 shapes_open calls acme.shapes.open",
    ]


PLAIN = r"""
    struct A {
        int run(int a) { return a - -1 + f("a  b"); }
    };
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    struct A
    {
        // One.
        int run( int a )
        {
            return a - -1 /* two */ + f( "a  b" );
        }
    };
"""
    assert hashes("cpp", formatted) == hashes("cpp", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("cpp", PLAIN.replace(old, new)) != hashes("cpp", PLAIN)
